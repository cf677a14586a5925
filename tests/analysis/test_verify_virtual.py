"""The answer on servers in virtual time: an H200 where a schedule loses, and what the tool says by itself."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from loadgen.analysis import verify_claim
from loadgen.analysis.findings import analyse, situation_of
from loadgen.analysis.recommendation import advise
from loadgen.analysis.schedule import Choice
from loadgen.analysis.verify_claim import make_claim
from loadgen.analysis.verify_conclude import verify
from loadgen.analysis.verify_model import Role, Verdict, Verification
from loadgen.metrics.model import HistogramDelta
from loadgen.profiles.model import BatchSchedule, ServerProfile, SpeculativeConfig
from loadgen.simulator.config import engine_config
from loadgen.simulator.core import SimulatedCore
from loadgen.simulator.hardware import PRESETS
from loadgen.simulator.model import SimRequest
from loadgen.simulator.noise import Noise
from loadgen.simulator.text import TextModel
from loadgen.simulator.virtual import VirtualLoop, VirtualResult, run_closed_loop
from loadgen.store.model import CellResult, Manifest

LEVELS = (1, 16, 64, 128)
REPEATS = 3
RATES = (0.7, 0.49, 0.343)
TEXT = TextModel()
Arms = Mapping[str, SpeculativeConfig | None]


def draft(k: int, schedule: BatchSchedule | None = None) -> SpeculativeConfig:
    """The one-layer draft of h200.md with its synthetic acceptance."""
    return SpeculativeConfig("draft_model", k, {}, schedule, synthetic_acceptance_rates=RATES[:k])


@cache
def run(arm: str, k: int, schedule: BatchSchedule | None, level: int, repeat: int, seed: int) -> VirtualResult:
    """One window in virtual time on vLLM 0.26: 300-token prompts, 512 forced tokens, a server start per repeat."""
    config = engine_config(ServerProfile(arm, {}, draft(k, schedule) if k else None), version="0.26.0")
    noise = Noise(jitter=0.015, start_effect=0.004, seed=seed * 1000 + repeat * 100 + len(arm))
    core = SimulatedCore(config, PRESETS["h200-8b"], noise=noise, text=TEXT)

    def request(index: int) -> SimRequest:
        first = 1000 + 300 * (index + 7919 * (repeat + seed))
        return SimRequest(str(index), tuple(range(first, first + 300)), 512, ignore_eos=True)

    return run_closed_loop(core, request, VirtualLoop(level, max(6, level), spread_s=0.0))


def measure(cell: Any, arm: str, spec: SpeculativeConfig | None, level: int, repeat: int, seed: int) -> CellResult:
    """That window as a cell."""
    k, schedule = (spec.num_speculative_tokens, spec.schedule) if spec else (0, None)
    seen = run(arm, k, schedule, level, repeat, seed)
    made: CellResult = cell(arm, level, repeat, seen.tokens_per_s, speculates=spec is not None)
    assert made.window is not None
    window = replace(
        made.window,
        drafts=float(seen.drafts) if spec else None,
        draft_tokens=float(seen.draft_tokens) if spec else None,
        accepted_tokens=float(seen.accepted_tokens) if spec else None,
        inter_token_latency=HistogramDelta(seen.request_steps, seen.window_s),
        iteration_tokens=HistogramDelta(seen.steps, seen.tokens),
    )
    return replace(made, window=window)


def cells_of(cell: Any, arms: Arms, levels: Sequence[int], seed: int) -> list[CellResult]:
    places = [(level, repeat) for level in levels for repeat in range(REPEATS)]
    return [measure(cell, arm, spec, *place, seed) for place in places for arm, spec in arms.items()]


def plan(manifest: Any, arms: Arms, ladder: Mapping[str, Any]) -> Manifest:
    made: Manifest = manifest(tuple(arms), levels=LEVELS, settings={"ladder": dict(ladder)}, simulated=True)
    return replace(
        made,
        methods={name: spec.method if spec else "none" for name, spec in arms.items()},
        num_speculative_tokens={name: spec.num_speculative_tokens for name, spec in arms.items() if spec},
    )


def static(k: int) -> dict[str, Any]:
    return {"of": "draft", "k": k}


def constant(k: int) -> dict[str, Any]:
    return {"of": "draft", "k": k, "constant_schedule": True}


def reverify(cell: Any, manifest: Any, found: Any, ladder: Mapping[str, Any]) -> Verification:
    arms: dict[str, SpeculativeConfig | None] = {
        "baseline": None,
        "draft-k3": draft(3),
        "draft-schedule": draft(3, found.ranges),
    }
    roles = {Role.NONE: "baseline", Role.STATIC: "draft-k3", Role.SCHEDULE: "draft-schedule"}
    claim = make_claim(found, roles)
    cells = cells_of(cell, arms, verify_claim.tested_levels(LEVELS, claim.edges), seed=2)
    return verify(claim, plan(manifest, arms, ladder), cells, margin=0.03)


def test_on_an_h200_the_schedule_from_static_servers_does_not_hold(cell: Any, manifest: Any) -> None:
    """h200.md: static servers promise a schedule, the schedule pays for PIECEWISE graphs at every load."""
    arms: dict[str, SpeculativeConfig | None] = {"baseline": None, "draft-k1": draft(1), "draft-k3": draft(3)}
    made = plan(manifest, arms, {"draft-k1": static(1), "draft-k3": static(3)})
    cells = cells_of(cell, arms, LEVELS, seed=1)
    findings = analyse(made, cells)
    advice = advise(findings.conditions, situation_of(made, ()))
    assert advice is not None
    assert (advice.choice, advice.static_k) == (Choice.SCHEDULE, 3)

    verified = reverify(cell, manifest, advice, {})
    assert verified.verdict is Verdict.FAILS
    assert "does not hold" in verified.sentence
    assert "use static K = 3 up to" in verified.instead
    assert "a second pool without speculation from" in verified.instead
    assert 50 <= threshold(verified.instead) <= 80


def test_with_schedule_costs_an_h200_gets_two_pools_and_they_hold(cell: Any, manifest: Any) -> None:
    arms: dict[str, SpeculativeConfig | None] = {
        "baseline": None,
        "draft-k3": draft(3),
        "draft-schedule-k3": draft(3, ((1, 256, 3),)),
        "draft-schedule-k0": draft(3, ((1, 256, 0),)),
    }
    ladder = {"draft-k3": static(3), "draft-schedule-k3": constant(3), "draft-schedule-k0": constant(0)}
    made = plan(manifest, arms, ladder)
    findings = analyse(made, cells_of(cell, arms, LEVELS, seed=1))
    advice = advise(findings.conditions, situation_of(made, ()))
    assert advice is not None
    assert (advice.choice, advice.static_k) == (Choice.TWO_POOLS, 3)
    assert findings.recommendation is not None
    assert findings.recommendation.setting == "two_pools"
    assert "One server with a schedule loses to that" in findings.recommendation.why
    assert "draft on code-edit: best with K = 3 up to" in findings.answer

    verified = reverify(cell, manifest, advice, ladder)
    assert verified.verdict is Verdict.HOLDS
    assert verified.sentence.startswith("static K = 3 up to")
    assert "does not hold" in verified.schedule_note


def threshold(text: str) -> int:
    """64 of `use static K = 3 up to 64 requests in flight and …`."""
    found = re.search(r"up to (\d+)", text)
    assert found is not None
    return int(found[1])
