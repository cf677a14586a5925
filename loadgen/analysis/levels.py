"""One profile at one level: what its pairs say together."""

import math
from collections.abc import Callable, Sequence
from statistics import median

from loadgen.analysis.acceptance import pool, step_time_s
from loadgen.analysis.checks import JudgedPair, level_checks
from loadgen.analysis.model import Estimate, LevelFinding
from loadgen.analysis.pairs import Pair
from loadgen.analysis.ratios import (
    E2E,
    THROUGHPUT,
    TPOT,
    TTFT,
    Measure,
    estimate_figures,
    estimate_ratio,
    log_ratios,
    mean_and_sd,
    quotient,
    units,
)
from loadgen.analysis.signs import LevelStat
from loadgen.metrics.model import CounterDelta
from loadgen.store.model import CellResult


def level_finding(level: int, judged: Sequence[JudgedPair]) -> LevelFinding:
    """All figures of one level. Ratios come from valid pairs only; if none is valid, the rest is shown from all pairs,
    with `valid` False.
    """
    valid = [one.pair for one in judged if one.valid]
    shown = valid or [one.pair for one in judged]
    own, base = [pair.profile for pair in shown], [pair.baseline for pair in shown]
    pooled, base_pooled = pool(cell.window for cell in own), pool(cell.window for cell in base)
    return LevelFinding(
        concurrency=level,
        n=len(valid),
        valid=bool(valid),
        speedup=estimate_ratio(valid, THROUGHPUT),
        tpot_speedup=estimate_ratio(valid, TPOT),
        e2e_speedup=estimate_ratio(valid, E2E),
        ttft_ratio=estimate_ratio(valid, TTFT),
        tokens_per_s=_rate(own),
        baseline_tokens_per_s=_rate(base),
        batch=_batch(pooled, own),
        baseline_batch=_batch(base_pooled, base),
        acceptance_rate=pooled.acceptance_rate if pooled else None,
        mean_acceptance_length=pooled.mean_acceptance_length if pooled else None,
        acceptance_per_position=pooled.acceptance_per_position if pooled else (),
        tokens_per_step=pooled.tokens_per_step if pooled else None,
        draft_coverage=pooled.draft_coverage if pooled else None,
        step_time_ratio=quotient(step_time_s(pooled), step_time_s(base_pooled)),
        ttft_p50_s=_middle(own, lambda cell: cell.ttft_s.p50),
        tpot_p50_s=_middle(own, lambda cell: cell.tpot_s.p50),
        e2e_p50_s=_middle(own, lambda cell: cell.e2e_s.p50),
        baseline_ttft_p50_s=_middle(base, lambda cell: cell.ttft_s.p50),
        baseline_tpot_p50_s=_middle(base, lambda cell: cell.tpot_s.p50),
        checks=level_checks(judged),
        voided_cells=sum(one.profile_void for one in judged),
        voided_baseline_cells=sum(one.baseline_void for one in judged),
        drafts=pooled.drafts if pooled else None,
        accepted_tokens=pooled.accepted_tokens if pooled else None,
        draft_tokens=pooled.draft_tokens if pooled else None,
    )


def level_stat(level: int, pairs: Sequence[Pair], measure: Measure) -> LevelStat | None:
    """The level's log ratio over its independent units, for the break-even; None if no pair has the measure."""
    values = units(log_ratios(pairs, measure))
    if not values:
        return None
    mean, sd = mean_and_sd(values)
    return LevelStat(level, mean, len(values), sd)


def _rate(cells: Sequence[CellResult]) -> Estimate | None:
    return estimate_figures((cell.key.session, cell.output_tokens_per_s) for cell in cells)


def _batch(pooled: CounterDelta | None, cells: Sequence[CellResult]) -> float | None:
    """Requests decoded per engine step; the mean of the running gauge where the server counts no steps."""
    if pooled and pooled.decode_batch is not None:
        return pooled.decode_batch
    running = [cell.gauges.running_mean for cell in cells if cell.gauges.running_mean is not None]
    return math.fsum(running) / len(running) if running else None


def _middle(cells: Sequence[CellResult], read: Callable[[CellResult], float | None]) -> float | None:
    """The median over cells of a figure that some of them may lack."""
    values = [value for value in map(read, cells) if value is not None]
    return median(values) if values else None
