"""The whole analysis against the truth: noisy virtual sweeps of 20 seeds, shaped like a default run, without HTTP."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from loadgen.analysis.findings import analyse
from loadgen.analysis.model import BreakEven, BreakEvenStatus
from loadgen.load.shape import ClientHealth
from loadgen.load.summary import Distribution, distribution
from loadgen.metrics.model import GaugeSummary
from loadgen.profiles.loader import load_profile
from loadgen.simulator.config import EngineConfig, engine_config
from loadgen.simulator.core import SimulatedCore
from loadgen.simulator.hardware import DEFAULT_HARDWARE, PRESETS
from loadgen.simulator.model import SimRequest
from loadgen.simulator.noise import MILD
from loadgen.simulator.population import build_population
from loadgen.simulator.text import TextModel
from loadgen.simulator.virtual import VirtualLoop, VirtualResult, run_closed_loop
from loadgen.store.model import CellKey, CellResult, Condition, Manifest
from loadgen.sweep.plan import CellShape
from loadgen.workloads.registry import get_workload

LEVELS = (1, 4, 8, 16, 32)
SEEDS = 20
REPEATS = 3
PROMPTS = 700
TRUE_CROSSING = {"code-edit": 10.5, "chat": None}
"""From `loadgen simulate --truth`; tests/simulator/test_truth.py holds the default preset to it."""


class Bench:
    """Noisy cells of one workload on the default preset; prompts are made once and dealt to the seeds."""

    def __init__(self, workload: str) -> None:
        self.text = TextModel(kept=PROMPTS + 1)
        self.configs = {name: engine_config(load_profile(name)) for name in ("baseline", "ngram")}
        self.condition = Condition(workload, get_workload(workload).default_input_tokens, 0.0)
        self.request_s: dict[tuple[str, int], float] = {}
        population = build_population(
            get_workload(workload),
            self.configs["ngram"],
            self.text,
            seed=1,
            least=PROMPTS,
            most=PROMPTS,
            wanted_error=1,
        )
        self.requests = population.requests

    def cells(self, seed: int) -> Iterator[CellResult]:
        # A core a server start, as in a default run: its start effect is shared by all its cells.
        cores = {name: self.core(config, seed) for name, config in self.configs.items()}
        for repeat in range(REPEATS):
            for level in LEVELS:
                for name in self.configs:
                    yield self.cell(cores[name], CellKey(name, self.condition, level, repeat), seed)

    def core(self, config: EngineConfig, seed: int) -> SimulatedCore:
        noise = replace(MILD, seed=2 * seed + (config.method != "none"), first_request=False)
        return SimulatedCore(config, PRESETS[DEFAULT_HARDWARE], noise=noise, text=self.text)

    def cell(self, core: SimulatedCore, key: CellKey, seed: int) -> CellResult:
        first = (seed * 7919 + key.repeat * 613 + key.level * 131) % PROMPTS

        sent: list[str] = []

        def source(index: int) -> SimRequest:
            sent.append(f"{key}/{index}")
            return replace(self.requests[(first + index) % PROMPTS], request_id=sent[-1])

        shape = CellShape()
        # The sweep gets this from its warm-up.
        window_s = max(shape.window_s, shape.window_requests * self.request_s.get((key.profile, key.level), 0.0))
        found = run_closed_loop(core, source, VirtualLoop(key.level, shape.min_requests, window_s=window_s))
        self.request_s[key.profile, key.level] = key.level * found.window_s / found.requests
        for request_id in sent:
            core.abort(request_id)
        core.reset_prefix_cache()
        return as_cell(key, found)


def as_cell(key: CellKey, found: VirtualResult) -> CellResult:
    nothing = Distribution(0)
    return CellResult(
        key=key,
        order=0,
        started_at="",
        window_s=found.window_s,
        output_tokens_per_s=found.tokens_per_s,
        requests_per_s=found.requests / found.window_s,
        outcomes={"ok": found.requests},
        ttft_s=distribution(found.ttft_s),
        tpot_s=distribution(found.tpot_s),
        e2e_s=nothing,
        chunk_gap_s=nothing,
        output_tokens=distribution(found.output_tokens),
        prompt_tokens=nothing,
        client=ClientHealth(0.001, 0.1, float(key.level), 0.0),
        window=None,
        idle=None,
        gauges=GaugeSummary(0),
        client_tokens_total=found.tokens,
        token_sources={"server": found.requests},
    )


def manifest(condition: Condition) -> Manifest:
    return Manifest(
        run_id="virtual",
        created_at="",
        loadgen_version="",
        argv=(),
        engine="simulator",
        engine_reason="",
        simulated=True,
        profiles=("baseline", "ngram"),
        against="baseline",
        methods={"baseline": "none", "ngram": "ngram"},
        num_speculative_tokens={"ngram": 4},
        conditions=(condition,),
        levels=LEVELS,
        repeats=REPEATS,
        sessions=1,
        seed=1,
        quick=False,
        order="together",
        sampling={},
        hardware={},
    )


def verdicts(workload: str) -> list[BreakEven]:
    bench = Bench(workload)
    found = []
    for seed in range(SEEDS):
        findings = analyse(manifest(bench.condition), tuple(bench.cells(seed)))
        (profile,) = findings.conditions[0].profiles
        found.append(profile.break_even["output_tokens_per_s"])
    return found


def test_the_interval_holds_the_true_crossing_on_code_edit() -> None:
    found = verdicts("code-edit")
    truth = TRUE_CROSSING["code-edit"]
    assert truth is not None
    holds = [
        verdict.status is BreakEvenStatus.FOUND
        and any(crossing.ci95[0] <= truth <= crossing.ci95[1] + 1 for crossing in verdict.crossings)
        for verdict in found
    ]
    assert sum(holds) >= SEEDS - 3, [(v.status, v.crossings) for v, good in zip(found, holds, strict=True) if not good]


def test_chat_never_pays_by_the_run_as_by_the_truth() -> None:
    found = [verdict.status for verdict in verdicts("chat")]
    assert found.count(BreakEvenStatus.NEVER_PAYS) >= SEEDS - 3, found


def test_a_seed_gives_the_same_cells_again() -> None:
    first, again = ([c.output_tokens_per_s for c in islice(Bench("chat").cells(3), 6)] for _ in range(2))
    assert first == again
