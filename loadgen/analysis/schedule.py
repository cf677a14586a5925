"""`num_speculative_tokens_per_batch_size` from a ladder of K, beside the best static K and no speculation at all."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from loadgen.analysis.batchmap import batch_at
from loadgen.analysis.model import LevelFinding
from loadgen.analysis.ratios import t_quantile
from loadgen.profiles.model import BatchSchedule

TIE = math.log(1.02)
"""Gains below 2 % are ties: no re-measurement of a few minutes tells them apart (issue 4)."""
TIE_WITHOUT_SPREAD = math.log(1.05)
"""Below n = 3 the noise is not known; the indicative margin of the break-even."""
STANDARD_ERRORS = 2.0


@dataclass(frozen=True)
class Rung:
    """One K at one level: ln speed-up over the baseline, its standard error (None below n = 3), requests per step."""

    concurrency: int
    log_speedup: float
    standard_error: float | None
    batch: float | None


class Choice(StrEnum):
    """What to run."""

    SCHEDULE = "schedule"
    STATIC = "static"
    NONE = "none"


@dataclass(frozen=True)
class ScheduledLevel:
    """What the schedule picks at one level, and what that is worth."""

    concurrency: int
    k: int
    speedup: float
    over_static: float
    """Ratio of expected tokens/s to the best static K's."""


@dataclass(frozen=True)
class Schedule:
    """A schedule in vLLM's form, and whether to use it."""

    ranges: BatchSchedule
    choice: Choice
    static_k: int
    """The static K with the largest mean ln speed-up; 0 if none gains in the mean."""
    levels: tuple[ScheduledLevel, ...]
    zero_measured: bool
    """False if K = 0 was taken for the baseline itself: vLLM's K = 0 costs more (6 to 22 % TPOT, vllm#49986)."""
    sentence: str


def rungs(levels: Sequence[LevelFinding]) -> tuple[Rung, ...]:
    """The valid levels of one profile as rungs; the standard error is taken back from the t interval."""
    found = []
    for level in levels:
        if not level.valid or level.speedup is None:
            continue
        error = None
        if level.speedup.ci95 is not None:
            low, high = level.speedup.ci95
            error = (math.log(high) - math.log(low)) / 2 / t_quantile(level.speedup.n - 1)
        found.append(Rung(level.concurrency, math.log(level.speedup.value), error, level.batch))
    return tuple(found)


def make_schedule(
    ladder: Mapping[int, Sequence[Rung]],
    *,
    max_num_seqs: int,
    static: Mapping[int, Sequence[Rung]] | None = None,
) -> Schedule | None:
    """The schedule, from measured levels by K; None if no level was measured for every K.

    At each level the best K wins; within noise the smaller one. Between two levels with another K the edge stands where
    their curves cross (linear in log2 of the concurrency), in requests per step of the K that ends there. `ladder` may
    hold K = 0 (a constant schedule [[1, max, 0]], which prices vLLM's K = 0); without it K = 0 is the baseline.
    `static` are the static servers where `ladder` holds constant schedules: the best static K is then one of those.
    """
    shared = _shared_levels([*ladder.values(), *(static or {}).values()])
    if not shared:
        return None
    curves = {k: _curve(found, shared) for k, found in sorted(ladder.items())}
    zero_measured = 0 in curves
    curves.setdefault(0, {level: Rung(level, 0.0, 0.0, None) for level in shared})
    picks = {level: _pick({k: curve[level] for k, curve in curves.items()}) for level in shared}
    statics = {k: _curve(found, shared) for k, found in (static or ladder).items() if k > 0}
    static_k, best_static = _best_static(statics, shared)
    levels = tuple(
        ScheduledLevel(
            level,
            picks[level],
            math.exp(curves[picks[level]][level].log_speedup),
            math.exp(curves[picks[level]][level].log_speedup - best_static[level].log_speedup),
        )
        for level in shared
    )
    ranges = _ranges(picks, curves, max_num_seqs)
    choice = _choice(picks, curves, best_static, static_k)
    return Schedule(ranges, choice, static_k, levels, zero_measured, _sentence(choice, ranges, static_k, levels))


def _shared_levels(ladders: Sequence[Sequence[Rung]]) -> list[int]:
    sets = [{rung.concurrency for rung in found} for found in ladders]
    return sorted(set.intersection(*sets)) if sets else []


def _curve(found: Sequence[Rung], levels: Sequence[int]) -> dict[int, Rung]:
    return {rung.concurrency: rung for rung in found if rung.concurrency in levels}


def noise(one: Rung, other: Rung) -> float:
    """How far two ln speed-ups may differ and still be a tie."""
    if one.standard_error is None or other.standard_error is None:
        return TIE_WITHOUT_SPREAD
    return max(TIE, STANDARD_ERRORS * math.hypot(one.standard_error, other.standard_error))


def _pick(by_k: Mapping[int, Rung]) -> int:
    """The smallest K that ties with the best one."""
    best = max(by_k.values(), key=lambda rung: rung.log_speedup)
    return min(k for k, rung in by_k.items() if best.log_speedup - rung.log_speedup <= _tie(rung, best))


def _tie(rung: Rung, best: Rung) -> float:
    return 0.0 if rung is best else noise(rung, best)


def _best_static(statics: Mapping[int, Mapping[int, Rung]], levels: Sequence[int]) -> tuple[int, dict[int, Rung]]:
    """The static K with the largest mean ln speed-up, and its curve; K = 0 (the baseline) if none is above 0."""
    means = {k: math.fsum(curve[level].log_speedup for level in levels) / len(levels) for k, curve in statics.items()}
    best = max(sorted(means), key=lambda k: means[k], default=0)
    if not means or means[best] <= 0:
        return 0, {level: Rung(level, 0.0, 0.0, None) for level in levels}
    return best, dict(statics[best])


def _choice(
    picks: Mapping[int, int], curves: Mapping[int, Mapping[int, Rung]], best_static: Mapping[int, Rung], static_k: int
) -> Choice:
    """A schedule only where it beats the best static K beyond noise at some level and loses to it nowhere."""
    wins, loses = False, False
    for level, k in picks.items():
        gain = curves[k][level].log_speedup - best_static[level].log_speedup
        margin = noise(curves[k][level], best_static[level])
        wins, loses = wins or gain > margin, loses or gain < -margin
    if wins and not loses and len(set(picks.values())) > 1:
        return Choice.SCHEDULE
    return Choice.STATIC if static_k else Choice.NONE


def _ranges(picks: Mapping[int, int], curves: Mapping[int, Mapping[int, Rung]], max_num_seqs: int) -> BatchSchedule:
    levels = sorted(picks)
    found: list[tuple[int, int, int]] = []
    first = 1
    for low, high in itertools.pairwise(levels):
        k, next_k = picks[low], picks[high]
        if k == next_k:
            continue
        edge = _edge(curves[k], curves[next_k], low, high)
        last = int(batch_at(_batches(curves, k, next_k), edge))
        if last >= first:
            found.append((first, last, k))
            first = last + 1
    found.append((first, max(max_num_seqs, first), picks[levels[-1]]))
    return tuple(found)


def _edge(ours: Mapping[int, Rung], theirs: Mapping[int, Rung], low: int, high: int) -> int:
    """The last concurrency for the K that ends here, from `low` to `high` − 1."""
    at_low = ours[low].log_speedup - theirs[low].log_speedup
    at_high = ours[high].log_speedup - theirs[high].log_speedup
    # Ties go to the smaller K, so that the curves need not cross in between: then the middle.
    share = at_low / (at_low - at_high) if at_low > 0 > at_high else 0.5
    exact = low * math.exp(share * math.log(high / low))
    return min(max(math.floor(exact + 1e-9), low), high - 1)


def _batches(curves: Mapping[int, Mapping[int, Rung]], k: int, next_k: int) -> list[tuple[int, float | None]]:
    """(concurrency, batch) of the K that ends at an edge; of its neighbour where it has none (K = 0 not measured)."""
    own = [(rung.concurrency, rung.batch) for rung in curves[k].values()]
    if any(batch is not None for _, batch in own):
        return own
    return [(rung.concurrency, rung.batch) for rung in curves[next_k].values()]


def _sentence(choice: Choice, ranges: BatchSchedule, static_k: int, levels: Sequence[ScheduledLevel]) -> str:
    if choice is Choice.NONE:
        return "No K gains beyond noise at any load in the mean: leave speculation out."
    if choice is Choice.STATIC:
        return f"Static K = {static_k} is as good as any schedule of the measured K at these loads: keep it static."
    best = max(levels, key=lambda level: level.over_static)
    text = ", ".join(f"K = {k} for {first} to {last}" for first, last, k in ranges)
    against = f"static K = {static_k}" if static_k else "no speculation"
    return f"{text} requests per step: up to {best.over_static:.2f}x {against} (at {best.concurrency} in flight)."
