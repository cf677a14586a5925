"""`num_speculative_tokens_per_batch_size` from a ladder of K, beside the best static K and no speculation at all."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from loadgen.analysis.model import Estimate, LevelFinding
from loadgen.analysis.moderation import Spread, moderated
from loadgen.analysis.ratios import MIN_N, mean_and_sd, t_quantile
from loadgen.analysis.schedule_edges import TIE, Ranges, Rung, ranges, served
from loadgen.profiles.model import BatchSchedule

TIE_WITHOUT_SPREAD = math.log(1.05)
"""Below n = 3 the noise is not known; the indicative margin of the break-even."""
STANDARD_ERRORS = 2.0


class Choice(StrEnum):
    """What to run."""

    SCHEDULE = "schedule"
    STATIC = "static"
    TWO_POOLS = "two_pools"
    """The static K up to a load, and a second pool without speculation above."""
    NONE = "none"


@dataclass(frozen=True)
class ScheduledLevel:
    """What the schedule picks at one level, and what that is worth."""

    concurrency: int
    k: int
    speedup: float
    """Expected gain over no speculation."""
    over_static: float
    """Ratio of expected tokens/s to the best static K's."""
    speedup_ci95: tuple[float, float] | None = None
    over_static_ci95: tuple[float, float] | None = None
    static_out: bool = False
    """The static K does not surely keep the limits here, so that it is no alternative; likewise no speculation."""
    none_out: bool = False


@dataclass(frozen=True)
class Schedule:
    """A schedule in vLLM's form, and whether to use it."""

    ranges: BatchSchedule
    choice: Choice
    static_k: int
    """The best static K (see `_best_static`); 0 if none gains anywhere."""
    levels: tuple[ScheduledLevel, ...]
    zero_measured: bool
    """False if K = 0 was taken for the baseline itself: vLLM's K = 0 costs more (6 to 22 % TPOT, vllm#49986)."""
    sentence: str
    in_flight: BatchSchedule = ()
    """`ranges` by requests in flight."""
    pools: BatchSchedule = ()
    """The static K and no speculation by requests per step: what two pools would serve."""
    pools_in_flight: BatchSchedule = ()
    static_levels: tuple[tuple[int, float], ...] = ()
    """(concurrency, speed-up) of the static K."""
    static_costs: tuple[int, ...] = ()
    """Levels at which the static K is slower than no speculation beyond noise; K = 0 elsewhere is a tie."""
    unmet: tuple[int, ...] = ()
    """Levels at which no setting surely keeps the limits: there the pick is by the objective alone."""
    better: tuple[ScheduledLevel, ...] = ()
    """Where a static K is chosen: the levels at which the schedule is faster beyond noise all the same."""


def rungs(levels: Sequence[LevelFinding], objective: str = "throughput", out: Collection[int] = ()) -> tuple[Rung, ...]:
    """The valid levels of one profile as rungs; the standard error is taken back from the t interval. `objective` is
    `throughput` (output tokens/s) or `tpot`; `out`: levels at which it does not surely keep the limits.
    """
    found = []
    for level in levels:
        value = level.tpot_speedup if objective == "tpot" else level.speedup
        if level.valid and value is not None:
            found.append(
                Rung(
                    level.concurrency,
                    math.log(value.value),
                    standard_error(value),
                    level.batch,
                    value.n,
                    out=level.concurrency in out,
                )
            )
    return _moderated(found)


def _moderated(found: Sequence[Rung]) -> tuple[Rung, ...]:
    """Three repeats give a standard error that is often far too small: a tie would then look like a choice."""
    known = [
        Spread(rung.concurrency, rung.n * rung.standard_error**2, rung.n - 1)
        for rung in found
        if rung.standard_error is not None
    ]
    drawn = {spread.level: spread.variance for spread in moderated(known)}
    return tuple(
        replace(rung, moderated_error=math.sqrt(drawn[rung.concurrency] / rung.n))
        if rung.standard_error is not None
        else rung
        for rung in found
    )


def standard_error(value: Estimate) -> float | None:
    """Of ln value; None where there is no interval."""
    if value.ci95 is None:
        return None
    return (math.log(value.ci95[1]) - math.log(value.ci95[0])) / 2 / t_quantile(value.n - 1)


def standard_error_of(values: Sequence[float]) -> tuple[float, float | None]:
    """(mean, its standard error) of ln ratios; no error below n = 3."""
    mean, sd = mean_and_sd(values)
    return mean, sd / math.sqrt(len(values)) if sd is not None and len(values) >= MIN_N else None


def make_schedule(
    ladder: Mapping[int, Sequence[Rung]],
    *,
    max_num_seqs: int,
    static: Mapping[int, Sequence[Rung]] | None = None,
    plain_out: Collection[int] = (),
) -> Schedule | None:
    """The schedule, from measured levels by K; None if no level was measured for every K.

    At each level the best K wins; within noise the smaller one. `ladder` may hold K = 0 (a constant schedule
    [[1, max, 0]], which prices vLLM's K = 0); without it K = 0 is the baseline. `static` are the static servers where
    `ladder` holds constant schedules: the best static K is then one of those. A setting that is out at a level
    (`Rung.out`, `plain_out` for no speculation) is no choice there, unless all are: those levels stand in `unmet`.
    """
    shared = _shared_levels([*ladder.values(), *(static or {}).values()])
    if not shared:
        return None
    unmet = _unmet(shared, [*ladder.values(), *(static or {}).values()], plain_out)
    curves = {k: _curve(found, shared, unmet) for k, found in sorted(ladder.items())}
    zero_measured = 0 in curves
    plain = {level: Rung(level, 0.0, 0.0, None, out=level in plain_out and level not in unmet) for level in shared}
    curves.setdefault(0, plain)
    picks = {level: _pick({k: curve[level] for k, curve in curves.items()}) for level in shared}
    statics = {k: _curve(found, shared, unmet) for k, found in (static or ladder).items() if k > 0}
    static_k = _best_static(statics, plain)
    best = statics[static_k] if static_k else plain
    made = ranges(picks, curves, max_num_seqs)
    pools = _pools(best, plain, static_k, max_num_seqs)
    # What a schedule is worth hangs on what it gives: loads that share a whole batch share a K.
    given = served(made.batches, picks, curves)
    choice = _choice(given, curves, best, plain)
    wanted, had = (
        tuple(_level(curves[by[level]][level], by[level], best[level], plain[level]) for level in shared)
        for by in (picks, given)
    )
    ahead = tuple(at for at in had if at.over_static > 1 and _ahead(curves[at.k], best, at.concurrency))
    return Schedule(
        ranges=made.batches,
        choice=choice,
        static_k=static_k,
        levels=had if choice is Choice.SCHEDULE else wanted,
        zero_measured=zero_measured,
        sentence=_sentence(choice, made.batches, pools.in_flight, static_k, had, ahead),
        in_flight=made.in_flight,
        pools=pools.batches,
        pools_in_flight=pools.in_flight,
        static_levels=tuple((level, math.exp(rung.log_speedup)) for level, rung in sorted(best.items())),
        static_costs=tuple(level for level, rung in sorted(best.items()) if _costs(rung, plain[level])),
        unmet=unmet,
        better=ahead if choice is Choice.STATIC else (),
    )


def _shared_levels(ladders: Sequence[Sequence[Rung]]) -> list[int]:
    sets = [{rung.concurrency for rung in found} for found in ladders]
    return sorted(set.intersection(*sets)) if sets else []


def _unmet(levels: Sequence[int], ladders: Sequence[Sequence[Rung]], plain_out: Collection[int]) -> tuple[int, ...]:
    """The levels at which every setting is out."""
    inside = {rung.concurrency for found in ladders for rung in found if not rung.out}
    return tuple(level for level in levels if level not in inside and level in plain_out)


def _curve(found: Sequence[Rung], levels: Sequence[int], unmet: Collection[int] = ()) -> dict[int, Rung]:
    return {
        rung.concurrency: replace(rung, out=rung.out and rung.concurrency not in unmet)
        for rung in found
        if rung.concurrency in levels
    }


def noise(one: Rung, other: Rung) -> float:
    """How far two ln speed-ups may differ and still be a tie."""
    ours, theirs = _error(one), _error(other)
    if ours is None or theirs is None:
        return TIE_WITHOUT_SPREAD
    return max(TIE, STANDARD_ERRORS * math.hypot(ours, theirs))


def _error(rung: Rung) -> float | None:
    return rung.standard_error if rung.moderated_error is None else rung.moderated_error


def _pick(by_k: Mapping[int, Rung]) -> int:
    """The smallest K that ties with the best one."""
    best = max(by_k.values(), key=lambda rung: rung.value)
    return min(k for k, rung in by_k.items() if best.value - rung.value <= _tie(rung, best))


def _tie(rung: Rung, best: Rung) -> float:
    return 0.0 if rung is best else noise(rung, best)


def _best_static(statics: Mapping[int, Mapping[int, Rung]], plain: Mapping[int, Rung]) -> int:
    """The K with the largest sum of ln speed-ups where it gains (a second pool can serve the rest); one that costs
    nowhere is preferred if it gives that up by no more than a tie on average. 0 if none gains.
    """
    gains = {
        k: math.fsum(max(0.0, rung.value - plain[level].value) for level, rung in curve.items())
        for k, curve in sorted(statics.items())
    }
    best = max(gains, key=lambda k: gains[k], default=0)
    if not best or gains[best] <= 0:
        return 0
    safe = [k for k, curve in statics.items() if not any(_costs(rung, plain[level]) for level, rung in curve.items())]
    simplest = max(sorted(safe), key=lambda k: gains[k], default=best)
    return simplest if gains[best] - gains[simplest] <= TIE * len(statics[best]) else best


def _costs(rung: Rung, plain: Rung) -> bool:
    """Slower than no speculation beyond noise, or out where that is not."""
    return rung.value - plain.value < -noise(rung, plain)


def _pools(best: Mapping[int, Rung], plain: Mapping[int, Rung], static_k: int, max_num_seqs: int) -> Ranges:
    if not static_k:
        off = ((1, max(max_num_seqs, *plain), 0),)
        return Ranges(off, off)
    curves = {0: plain, static_k: best}
    picks = {level: _pick({k: curve[level] for k, curve in curves.items()}) for level in plain}
    # A router has no batch that hovers at an edge.
    return ranges(picks, curves, max_num_seqs, clearance=False)


def _choice(
    picks: Mapping[int, int],
    curves: Mapping[int, Mapping[int, Rung]],
    best: Mapping[int, Rung],
    plain_at: Mapping[int, Rung],
) -> Choice:
    """A schedule only where it beats the static K somewhere, no speculation somewhere, and loses to neither anywhere;
    all beyond noise. Else two pools where the static K both gains and loses, the static K where it only gains.
    """
    over_static, over_none, loses, gains, costs = False, False, False, False, False
    for level, k in picks.items():
        own, static, plain = curves[k][level], best[level], plain_at[level]
        over_static |= own.value - static.value > noise(own, static)
        over_none |= own.value - plain.value > noise(own, plain)
        loses |= any(own.value - other.value < -noise(own, other) for other in (static, plain))
        gains |= static.value - plain.value > noise(static, plain)
        costs |= _costs(static, plain)
    if len(set(picks.values())) > 1 and over_static and over_none and not loses:
        return Choice.SCHEDULE
    if not gains:
        return Choice.NONE
    return Choice.TWO_POOLS if costs else Choice.STATIC


def _ahead(own: Mapping[int, Rung], static: Mapping[int, Rung], level: int) -> bool:
    """The schedule is faster than the static K there, beyond noise."""
    return own[level].value - static[level].value > noise(own[level], static[level])


def _level(own: Rung, k: int, static: Rung, plain: Rung) -> ScheduledLevel:
    gain = own.log_speedup - static.log_speedup
    both = None
    if own.standard_error is not None and static.standard_error is not None:
        both = math.hypot(own.standard_error, static.standard_error) if own is not static else 0.0
    degrees = max(1, min(own.n, static.n) - 1)
    return ScheduledLevel(
        own.concurrency,
        k,
        math.exp(own.log_speedup),
        math.exp(gain),
        _interval(own.log_speedup, own.standard_error, degrees),
        _interval(gain, both, degrees),
        static.out,
        plain.out,
    )


def _interval(log_ratio: float, error: float | None, degrees: int) -> tuple[float, float] | None:
    if error is None:
        return None
    half = t_quantile(degrees) * error
    return math.exp(log_ratio - half), math.exp(log_ratio + half)


def _sentence(
    choice: Choice,
    batches: BatchSchedule,
    pools: BatchSchedule,
    static_k: int,
    levels: Sequence[ScheduledLevel],
    ahead: Sequence[ScheduledLevel],
) -> str:
    if choice is Choice.NONE:
        return "No K gains beyond noise at any load: leave speculation out."
    if choice is Choice.STATIC and ahead:
        return _static_all_the_same(static_k, levels, ahead)
    if choice is Choice.STATIC:
        return f"Static K = {static_k} is as good as any schedule of the measured K at these loads: keep it static."
    if choice is Choice.TWO_POOLS:
        parts = [f"{'K = ' + str(k) if k else 'no speculation'} {span(first, last, pools)}" for first, last, k in pools]
        over = [(level.over_static, f"static K = {static_k}", level) for level in levels if not level.static_out]
        over += [(level.speedup, "no speculation", level) for level in levels if not level.none_out]
        ratio, rival, worst = min(over, key=lambda one: one[0])
        lost = (
            f" One server with a schedule loses to that: {ratio:.2f}x {rival} at {worst.concurrency}."
            if ratio < math.exp(-TIE)
            else ""
        )
        return f"Two pools behind a router, by requests in flight: {', '.join(parts)}.{lost}"
    best = max(levels, key=lambda level: level.over_static)
    text = ", ".join(f"K = {k} for {first} to {last}" for first, last, k in batches)
    against = f"static K = {static_k}" if static_k else "no speculation"
    return f"{text} requests per step: up to {best.over_static:.2f}x {against} (at {best.concurrency} in flight)."


def _static_all_the_same(static_k: int, levels: Sequence[ScheduledLevel], ahead: Sequence[ScheduledLevel]) -> str:
    """Where the schedule would be better and by how much, and where it is worse."""
    gains = ", ".join(f"{one.over_static:.2f}x at {one.concurrency}" for one in ahead)
    worst = min(levels, key=lambda one: one.over_static)
    none = min(levels, key=lambda one: one.speedup)
    if worst.over_static < math.exp(-TIE):
        reason = f"but loses elsewhere ({worst.over_static:.2f}x at {worst.concurrency})"
    elif none.speedup < math.exp(-TIE):
        reason = f"but loses to no speculation ({none.speedup:.2f}x at {none.concurrency})"
    else:
        reason = "but nowhere else"
    return (
        f"A schedule of the measured K is better than static K = {static_k} at some loads ({gains}), {reason}: keep it "
        "static."
    )


def span(first: int, last: int, of: BatchSchedule) -> str:
    """`up to 64`, `from 65 on`, or `from 9 to 64`, by where the range stands among the others."""
    if first == of[0][0]:
        return f"up to {last}" if len(of) > 1 else "at every tested load"
    if last == of[-1][1]:
        return f"from {first} on"
    return f"from {first} to {last}" if last > first else f"at {first}"
