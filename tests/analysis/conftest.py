"""Cells and manifests for the analysis' tests, made from a few numbers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from loadgen.load.shape import ClientHealth
from loadgen.load.summary import Distribution
from loadgen.metrics.model import CounterDelta, GaugeSummary, HistogramDelta
from loadgen.store.model import CellKey, CellResult, Condition, Manifest

CODE = Condition("code-edit", 512, 0.0)
CellFactory = Callable[..., CellResult]
ManifestFactory = Callable[..., Manifest]
RunFactory = Callable[..., list[CellResult]]


def flat(value: float, n: int = 40) -> Distribution:
    return Distribution(n, value, value, value, value, value)


def server_delta(level: int, tokens_per_s: float, window_s: float, speculates: bool) -> CounterDelta:
    tokens = tokens_per_s * window_s
    requests = tokens / 128
    per_step = 2.0 if speculates else 1.0
    request_steps = (tokens - requests) / per_step
    drafts = request_steps * 0.8 if speculates else None
    return CounterDelta(
        duration_s=window_s,
        generation_tokens=tokens,
        prompt_tokens=requests * 512,
        drafts=drafts,
        draft_tokens=drafts * 4 if drafts is not None else None,
        accepted_tokens=drafts * 1.25 if drafts is not None else None,
        accepted_per_position=(drafts * 0.6, drafts * 0.4, drafts * 0.15, drafts * 0.1) if drafts is not None else (),
        preemptions=0.0,
        prefix_cache_queries=requests * 512,
        prefix_cache_hits=0.0,
        inter_token_latency=HistogramDelta(request_steps, window_s * level),
        iteration_tokens=HistogramDelta(request_steps / level, tokens),
        time_to_first_token=HistogramDelta(requests, requests * 0.05),
        process_cpu_s=0.2 * window_s,
    )


def make_cell(
    profile: str = "ngram",
    level: int = 8,
    repeat: int = 0,
    tokens_per_s: float = 1000.0,
    *,
    condition: Condition = CODE,
    session: int = 0,
    order: int = 0,
    speculates: bool | None = None,
    **changes: Any,
) -> CellResult:
    window_s = 2.5
    drafts = profile != "baseline" if speculates is None else speculates
    delta = server_delta(level, tokens_per_s, window_s, drafts)
    tpot = level / tokens_per_s
    cell = CellResult(
        key=CellKey(profile, condition, level, repeat, session),
        order=order,
        started_at="2026-11-29T16:20:00.000Z",
        window_s=window_s,
        output_tokens_per_s=tokens_per_s,
        requests_per_s=tokens_per_s / 128,
        outcomes={"ok": 40},
        ttft_s=flat(0.05),
        tpot_s=flat(tpot),
        e2e_s=flat(0.05 + 127 * tpot),
        chunk_gap_s=flat(tpot),
        output_tokens=flat(128.0),
        prompt_tokens=flat(512.0),
        client=ClientHealth(0.001, 0.1, float(level), 0.0),
        window=delta,
        idle=replace(delta, generation_tokens=5120.0),
        gauges=GaugeSummary(5, float(level), float(level), 0.0, 0.0, 0.3, 0.01, 0.02),
        client_tokens_total=5120,
        token_sources={"server": 40},
        repeated_ngram_share=0.1,
        half_second_tokens=tuple([tokens_per_s / 2] * 5),
        steal_share=0.0,
        prompts_sha256=f"{level}-{repeat}-{session}",
    )
    return replace(cell, **changes)


def make_manifest(
    profiles: Sequence[str] = ("baseline", "ngram"),
    conditions: Sequence[Condition] = (CODE,),
    **changes: Any,
) -> Manifest:
    manifest = Manifest(
        run_id="2026-11-29T16-20-00Z-ngram",
        created_at="2026-11-29T16:20:00.000Z",
        loadgen_version="0.1.0",
        argv=("sweep",),
        engine="process",
        engine_reason="a local vLLM",
        simulated=False,
        profiles=tuple(profiles),
        against="baseline",
        methods={name: "none" if name == "baseline" else name for name in profiles},
        num_speculative_tokens={name: 4 for name in profiles if name != "baseline"},
        conditions=tuple(conditions),
        levels=(1, 2, 4, 8, 16, 32),
        repeats=3,
        sessions=1,
        seed=1,
        quick=False,
        order="alternate",
        sampling={},
        hardware={},
    )
    return replace(manifest, **changes)


def make_run(
    ratios: Mapping[int, float],
    *,
    noise: Iterable[float] = (0.99, 1.0, 1.01),
    condition: Condition = CODE,
    profile: str = "ngram",
    session: int = 0,
) -> list[CellResult]:
    cells = []
    for level, ratio in ratios.items():
        base = 200.0 * level**0.9
        for repeat, factor in enumerate(noise):
            cells.append(make_cell("baseline", level, repeat, base, condition=condition, session=session))
            cells.append(make_cell(profile, level, repeat, base * ratio * factor, condition=condition, session=session))
    return cells


@pytest.fixture
def cell() -> CellFactory:
    return make_cell


@pytest.fixture
def manifest() -> ManifestFactory:
    return make_manifest


@pytest.fixture
def run_of() -> RunFactory:
    return make_run
