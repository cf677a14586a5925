"""A realistic run for the report tests: two conditions, one to six profiles, one void level."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from loadgen.analysis.model import (
    BreakEven,
    BreakEvenStatus,
    Check,
    ConditionFinding,
    Crossing,
    Estimate,
    Explanation,
    Findings,
    LevelFinding,
    ProfileFinding,
    Recommendation,
)
from loadgen.load.shape import ClientHealth
from loadgen.load.summary import Distribution
from loadgen.metrics.model import CounterDelta, GaugeSample, GaugeSummary, HistogramDelta
from loadgen.report.detail import Detail, Latencies, Place
from loadgen.store.model import CellKey, CellResult, Condition, Manifest, ServerFacts

LEVELS = (1, 2, 4, 8, 16, 32)
CODE = Condition("code-edit", 512, 0.0)
CHAT = Condition("chat", 256, 0.0)
CLIENT_BOUND = Check(
    "client-bound",
    True,
    "The client's event loop lagged 48 ms at p99, so it and not the server set the pace.",
    "Give loadgen a free core or lower the level.",
)
LOCKSTEP = Check("lockstep", False, "Requests ended in step with each other.", "Vary the output length.")
RESET = Check("reset-counters", False, "The server's counters restarted once.", "Look into servers/ngram-0.log.")


def level(concurrency: int, speedup: float, spread: float = 0.03, accept: float = 0.45) -> LevelFinding:
    base = 62.0 * concurrency / (1 + concurrency / 40)
    length = 1 + 4 * accept
    return LevelFinding(
        concurrency=concurrency,
        n=3,
        valid=True,
        speedup=Estimate(speedup, 3, (speedup - spread, speedup + spread)),
        tpot_speedup=Estimate(speedup * 1.02, 3, (speedup * 1.02 - spread, speedup * 1.02 + spread)),
        e2e_speedup=Estimate(speedup, 3, (speedup - spread, speedup + spread)),
        ttft_ratio=Estimate(1.08, 3, (1.02, 1.14)),
        tokens_per_s=Estimate(base * speedup, 3, (base * speedup * 0.98, base * speedup * 1.02)),
        baseline_tokens_per_s=Estimate(base, 3, (base * 0.985, base * 1.015)),
        batch=concurrency * 0.98,
        baseline_batch=concurrency * 0.99,
        acceptance_rate=accept,
        mean_acceptance_length=length,
        acceptance_per_position=tuple(accept * 0.85**i for i in range(4)),
        tokens_per_step=length * 0.9,
        draft_coverage=0.9,
        step_time_ratio=length * 0.9 / speedup,
        ttft_p50_s=0.041 + 0.003 * concurrency,
        tpot_p50_s=0.016 / speedup * (1 + concurrency / 40),
        e2e_p50_s=2.1,
        baseline_ttft_p50_s=0.038 + 0.003 * concurrency,
        baseline_tpot_p50_s=0.016 * (1 + concurrency / 40),
        drafts=1200.0 * concurrency,
        accepted_tokens=4800.0 * concurrency * accept,
        draft_tokens=4800.0 * concurrency,
        explanation=explanation(speedup, length),
    )


def explanation(speedup: float, length: float) -> Explanation | None:
    if not 0 < speedup < math.inf:
        return None
    gain, coverage = math.log(length), math.log(0.9)
    return Explanation(
        log_speedup=math.log(speedup),
        acceptance=gain,
        coverage=coverage,
        step_rate=math.log(speedup) - gain - coverage + 0.01,
        batch=-0.01,
        first_tokens=0.004,
        residual=-0.004,
        step_time_s=0.02,
        baseline_step_time_s=0.016,
        break_even_tokens_per_step=1.7,
        naive_speedup=1.5,
        regime="memory-bound" if speedup > 1 else "compute-bound",
        sentence=f"Accepted drafts give {length:.2f} tokens a drafted step; slower steps take a part of it",
    )


def profile(name: str, top: float, accept: float, levels: tuple[int, ...] = LEVELS) -> ProfileFinding:
    rows = tuple(level(c, top - 0.07 * math.log2(c) ** 1.35, accept=accept) for c in levels)
    if name == "ngram" and accept > 0.3:
        rows = (*rows[:-1], replace(rows[-1], checks=(LOCKSTEP,)))
    return ProfileFinding(name, name, rows, {"output_tokens_per_s": _turn(rows, name), "tpot": _turn(rows, name)})


def _turn(rows: tuple[LevelFinding, ...], name: str) -> BreakEven:
    levels = tuple(r.concurrency for r in rows)
    values = [r.speedup.value for r in rows if r.speedup]
    for low, high, a, b in zip(rows, rows[1:], values, values[1:], strict=False):
        if a >= 1 > b:
            at = low.concurrency * (high.concurrency / low.concurrency) ** ((a - 1) / (a - b))
            crossing = Crossing(at, (at * 0.85, at * 1.2), low.concurrency, high.concurrency, "down")
            sentence = f"{name} pays off up to {at:.0f} concurrent requests."
            return BreakEven(BreakEvenStatus.FOUND, (crossing,), sentence, tested_levels=levels)
    if not values:
        return BreakEven(BreakEvenStatus.INCONCLUSIVE, (), "No level carries a verdict.", True)
    pays = values[0] >= 1
    status = BreakEvenStatus.PAYS_THROUGHOUT if pays else BreakEvenStatus.NEVER_PAYS
    return BreakEven(status, (), f"{name} {'pays' if pays else 'costs'} at all levels.", tested_levels=levels)


def _findings() -> Findings:
    chat = profile("ngram", 0.99, 0.18)
    broken = replace(
        chat.levels[-1], valid=False, n=1, speedup=Estimate(0.41, 1), checks=(CLIENT_BOUND,), voided_cells=2
    )
    return Findings(
        run_id="2026-11-29T16-20-00Z-ngram",
        engine="simulator",
        simulated=True,
        interrupted=False,
        vllm_version="0.32.0",
        model="Qwen/Qwen3-8B",
        against="baseline",
        conditions=(
            ConditionFinding(CODE, (profile("ngram", 1.42, 0.45),)),
            ConditionFinding(CHAT, (replace(chat, levels=(*chat.levels[:-1], broken)),)),
        ),
        recommendation=Recommendation(
            "num_speculative_tokens_per_batch_size",
            ((1, 8, 4), (9, 13, 2), (14, 256, 0)),
            "code-edit, 512 input tokens, temperature 0",
            None,
            "Above 13 requests a verified step costs more than the accepted tokens save.",
        ),
        answer="On code-edit ngram pays off up to 13 concurrent requests (95 % CI 11 to 16); on chat it never pays.",
        checks=(RESET,),
        notes=("Each level was measured three times, baseline and ngram in turn.",),
    )


def _manifest() -> Manifest:
    return Manifest(
        run_id="2026-11-29T16-20-00Z-ngram",
        created_at="2026-11-29T16:20:00.000Z",
        loadgen_version="0.1.0",
        argv=("loadgen", "sweep", "--profile", "ngram", "--workload", "code-edit,chat"),
        engine="simulator",
        engine_reason="no GPU and no Docker here",
        simulated=True,
        profiles=("baseline", "ngram"),
        against="baseline",
        methods={"baseline": "none", "ngram": "ngram"},
        num_speculative_tokens={"ngram": 4},
        conditions=(CODE, CHAT),
        levels=LEVELS,
        repeats=3,
        sessions=1,
        seed=7,
        quick=False,
        order="alternate",
        sampling={"temperature": 0.0, "top_p": 1.0, "ignore_eos": False},
        hardware={"cpu": "2 cores", "preset": "h200-8b", "gpu": None},
        settings={"shape": {"window_s": 2.5}},
    )


def _cell(name: str, condition: Condition, concurrency: int, repeat: int, order: int, rate: float) -> CellResult:
    spread = Distribution(40, 0.051, 0.05, 0.08, 0.1, 0.12)
    tokens = rate * 2.5
    steps = HistogramDelta(tokens / 2, 1.6)
    window = CounterDelta(
        2.5,
        generation_tokens=tokens,
        prompt_tokens=tokens * 2,
        drafts=None if name == "baseline" else tokens / 2,
        draft_tokens=None if name == "baseline" else tokens * 2,
        accepted_tokens=None if name == "baseline" else tokens * 0.9,
        accepted_per_position=() if name == "baseline" else (tokens * 0.3, tokens * 0.2, tokens * 0.1, tokens * 0.05),
        inter_token_latency=steps,
        iteration_tokens=HistogramDelta(tokens / 2 / concurrency, tokens),
    )
    return CellResult(
        key=CellKey(name, condition, concurrency, repeat),
        order=order,
        started_at="2026-11-29T16:21:00.000Z",
        window_s=2.5,
        output_tokens_per_s=rate,
        requests_per_s=rate / 120,
        outcomes={"ok": 40, "timeout": 1},
        ttft_s=spread,
        tpot_s=Distribution(40, 0.0151, 0.015, 0.018, 0.02, 0.022),
        e2e_s=spread,
        chunk_gap_s=spread,
        output_tokens=spread,
        prompt_tokens=spread,
        client=ClientHealth(0.002, 0.21, concurrency * 0.99, 0.05),
        window=window,
        idle=window,
        gauges=GaugeSummary(5, concurrency * 0.98, concurrency, 0.0, 0.0, 0.12, 0.004, 0.009),
        client_tokens_total=int(tokens),
        token_sources={"server": 41},
        half_second_tokens=tuple(rate / 2 * (1 + 0.03 * ((i * 7 + order) % 5 - 2)) for i in range(5)),
        prompts_sha256="ab12" * 16,
    )


def _cells(found: Findings, repeats: int = 3) -> tuple[CellResult, ...]:
    out: list[CellResult] = []
    for condition in found.conditions:
        first = condition.profiles[0] if condition.profiles else None
        for row in first.levels if first else ():
            for repeat in range(repeats):
                base = row.baseline_tokens_per_s.value if row.baseline_tokens_per_s else 1.0
                out.append(_cell("baseline", condition.condition, row.concurrency, repeat, len(out), base))
                for item in condition.profiles:
                    gain = next((r.speedup.value for r in item.levels if r is row and r.speedup), 1.1)
                    name = item.profile
                    out.append(
                        _cell(name, condition.condition, row.concurrency, repeat, len(out), base * (gain + repeat / 99))
                    )
    return tuple(out)


@pytest.fixture
def findings() -> Findings:
    return _findings()


@pytest.fixture
def manifest() -> Manifest:
    return _manifest()


@pytest.fixture
def cells(findings: Findings) -> tuple[CellResult, ...]:
    return _cells(findings)


def _detail(found: Findings) -> Detail:
    latencies: dict[Place, Latencies] = {}
    gauges: list[tuple[str, GaugeSample]] = []
    for cell in _cells(found):
        key = cell.key
        place = latencies.setdefault((key.condition, key.profile, key.level), Latencies())
        slow = 1.0 if key.profile == "baseline" else 1.1
        place.ttft_s += [slow * (0.04 + 0.002 * key.level) * (1 + (i * 37 % 40) / 60) for i in range(40)]
        place.tpot_s += [slow * 0.016 * (1 + key.level / 40) * (1 + (i * 29 % 40) / 200) for i in range(40)]
        for i in range(5):
            at = cell.order * 4.0 + i * 0.5
            gauges.append((key.profile, GaugeSample(at, key.level - (i == 3), 0.0, 0.02 * key.level + 0.01 * i, 0.004)))
    return Detail(gauges, latencies)


@pytest.fixture
def detail(findings: Findings) -> Detail:
    return _detail(findings)


@pytest.fixture
def make_detail() -> Callable[[Findings], Detail]:
    return _detail


@pytest.fixture
def make_cells() -> Callable[[Findings], tuple[CellResult, ...]]:
    return _cells


@pytest.fixture
def servers() -> tuple[ServerFacts, ...]:
    return tuple(
        ServerFacts(
            name,
            0,
            "http://127.0.0.1:8123",
            "Qwen/Qwen3-8B",
            "0.32.0",
            1.4,
            ("loadgen", "simulate", "--config", f"profiles/{name}.yaml", "--port", "8123"),
            {"cuda_graphs": True, "async_scheduling": name == "baseline"},
            32768,
        )
        for name in ("baseline", "ngram")
    )


@pytest.fixture
def large_findings(findings: Findings) -> Findings:
    """Six profiles by nine levels on two conditions."""
    levels = (1, 2, 4, 8, 16, 32, 64, 128, 256)
    names = ("ngram", "ngram-gpu", "suffix", "eagle3", "mtp", "draft-model")
    profiles = tuple(profile(n, 1.2 + 0.15 * i, 0.25 + 0.08 * i, levels) for i, n in enumerate(names))
    return replace(findings, conditions=(ConditionFinding(CODE, profiles), ConditionFinding(CHAT, profiles)))


@pytest.fixture
def hostile_findings(findings: Findings) -> Findings:
    """Every text from outside tries to break out of the report (C102)."""
    bad = "x</script><img src=q onerror=alert(1)>|`whoami`\x1b[31m\u2028=cmd()"
    check = Check("request-errors", True, bad, bad)
    first = findings.conditions[0]
    item = first.profiles[0]
    rows = tuple(replace(r, checks=(check,), valid=False) for r in item.levels)
    turn = {k: replace(v, sentence=bad) for k, v in item.break_even.items()}
    worst = ConditionFinding(
        replace(first.condition, workload=bad), (replace(item, profile=bad, levels=rows, break_even=turn),)
    )
    advice = Recommendation(bad, bad, bad, False, bad)
    return replace(
        findings, model=bad, answer=bad, conditions=(worst,), checks=(check,), recommendation=advice, notes=(bad,)
    )


@pytest.fixture
def degenerate(findings: Findings) -> dict[str, Findings]:
    """Runs with little or nothing to say."""
    empty = ProfileFinding("ngram", "ngram", (), {})
    hollow = LevelFinding(
        8, 0, False, None, None, None, None, None, None, None, None, None, None, (), None, None, None, None, None,
        None, None, None, (CLIENT_BOUND,), 3,
    )  # fmt: skip
    nan = level(8, math.nan, math.inf, accept=0.4)
    unknown = BreakEven(BreakEvenStatus.INCONCLUSIVE, (), "Nothing can be said.", True)
    invalid = ProfileFinding("ngram", "ngram", (hollow,), {"output_tokens_per_s": unknown})
    infinite = Crossing(math.inf, (math.nan, math.inf), 8, 16, "down")
    odd = ProfileFinding(
        "ngram",
        "ngram",
        (nan,),
        {"output_tokens_per_s": BreakEven(BreakEvenStatus.FOUND, (infinite,), "Odd.", True, (8,))},
    )

    def with_profile(item: ProfileFinding) -> Findings:
        return replace(findings, conditions=(ConditionFinding(CODE, (item,)),), recommendation=None)

    return {
        "no conditions": replace(findings, conditions=(), recommendation=None, model=None, vllm_version=None),
        "no profiles": replace(findings, conditions=(ConditionFinding(CODE, ()),)),
        "no levels": with_profile(empty),
        "all invalid": with_profile(invalid),
        "not finite": with_profile(odd),
        "interrupted": replace(findings, interrupted=True, recommendation=None),
    }
