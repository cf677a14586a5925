"""Where the speed-up passes 1.0 (docs/method.md, part 3)."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import isotonic_regression

from loadgen.analysis.local_curve import PRIOR, Prior, local_curve
from loadgen.analysis.model import BreakEven, BreakEvenStatus, Crossing
from loadgen.analysis.ratios import CONFIDENCE, MIN_N, t_quantile
from loadgen.analysis.signs import INDICATIVE_MARGIN, LevelStat, Signs, sure_signs

ROUNDING = 1e-9
"""2 ** log2(7) may fall just below 7."""
MAX_REPEATS = 30
"""More repeats than this are not advised: such a level is a draw."""


def find_break_even(
    levels: Sequence[LevelStat],
    *,
    quick: bool = False,
    pair_seconds: Mapping[int, float] | None = None,
    looks: int = 1,
    shifts: Sequence[float] = (),
    prior: Prior = PRIOR,
) -> BreakEven:
    """The status, all crossings and one sentence, from the log ratios per level (invalid levels left out).

    found: a sure gain and a sure loss. pays_throughout: a sure gain at the highest level, no sure loss, and no level
    below all sure gains that is over 5 % slower. never_pays: no sure gain, a sure loss, and every leaning gain has sure
    losses on both sides. inconclusive: anything else, with what would settle it; `pair_seconds` (measured seconds of
    one more pair, by level) turns that into time. `looks`: see `sure_signs`; `shifts` and `prior`: see `local_curve`.
    """
    levels = sorted(levels, key=lambda stat: stat.level)
    signs = sure_signs(levels, looks=looks)
    status = _status(levels, signs)
    crossings = _crossings(levels, signs, shifts, prior) if status is BreakEvenStatus.FOUND else ()
    if status is BreakEvenStatus.INCONCLUSIVE:
        sentence, wanted = _unsettled(levels, signs, pair_seconds or {})
    else:
        wanted = {}
        sentence = _sentence(status, levels, signs, crossings)
    return BreakEven(
        status=status,
        crossings=crossings,
        sentence=sentence,
        indicative=quick or signs.indicative,
        tested_levels=tuple(stat.level for stat in levels),
        sure_gains=signs.levels_with(1),
        sure_losses=signs.levels_with(-1),
        wanted=tuple(sorted(wanted.items())),
    )


def _status(levels: Sequence[LevelStat], signs: Signs) -> BreakEvenStatus:
    gains, losses = signs.levels_with(1), signs.levels_with(-1)
    if gains and losses:
        return BreakEvenStatus.FOUND
    if gains and gains[-1] == levels[-1].level and not _leaning_losses(levels, gains):
        return BreakEvenStatus.PAYS_THROUGHOUT
    if losses and not gains:
        leaning = [stat.level for stat in levels if stat.mean > 0 and signs.by_level[stat.level] == 0]
        if all(losses[0] < level < losses[-1] for level in leaning):
            return BreakEvenStatus.NEVER_PAYS
    return BreakEvenStatus.INCONCLUSIVE


def _leaning_losses(levels: Sequence[LevelStat], gains: Sequence[int]) -> list[int]:
    """Levels below every sure gain that are slower by more than the margin under which a ratio says nothing."""
    return [stat.level for stat in levels if stat.level < gains[0] and stat.mean < -INDICATIVE_MARGIN]


def _crossings(
    levels: Sequence[LevelStat], signs: Signs, shifts: Sequence[float], prior: Prior
) -> tuple[Crossing, ...]:
    """One crossing wherever two neighbouring sure levels differ in sign."""
    sure = [stat for stat in levels if signs.by_level[stat.level]]
    turns = [
        pair for pair in itertools.pairwise(sure) if signs.by_level[pair[0].level] != signs.by_level[pair[1].level]
    ]
    found = []
    for number, (below, above) in enumerate(turns):
        direction = "down" if below.mean > 0 else "up"
        inside = [stat for stat in levels if below.level <= stat.level <= above.level]
        crossing, start = _crossing(inside, direction)
        if not signs.indicative:
            # A curve may reach beyond its bracket, but not into the next crossing's.
            low = turns[number - 1][1].level if number else levels[0].level
            high = turns[number + 1][0].level if number + 1 < len(turns) else levels[-1].level
            near = [stat for stat in levels if low <= stat.level <= high]
            crossing = _narrowed(crossing, start, near, shifts, prior)
        found.append(crossing)
    return tuple(found)


def _narrowed(
    crossing: Crossing, start: float, near: Sequence[LevelStat], shifts: Sequence[float], prior: Prior
) -> Crossing:
    """The crossing by a curve through the levels near it, where they are enough; else as it was."""
    low, high = float(crossing.level_below), float(crossing.level_above)
    curve = local_curve(near, (crossing.level_below, crossing.level_above), start, shifts, prior)
    if curve is None:
        return crossing
    whole = [min(float(math.floor(value + ROUNDING)), high - 1) for value in (curve.crossing, *curve.ci95)]
    whole[2] = max(whole[2], low)
    return replace(
        crossing,
        concurrency=whole[0],
        ci95=(whole[1], whole[2]),
        kind="curve",
        exact=curve.crossing,
        exact_ci95=curve.ci95,
    )


def _crossing(inside: Sequence[LevelStat], direction: str) -> tuple[Crossing, float]:
    """The crossing in a bracket: its point estimate, and the whole bracket as its interval; and the estimate unrounded.

    A crossing at c means that the sign of c no longer holds at c + 1; so between 8 and 16 it is one of 8 … 15. The
    estimate is where the line through the levels, linear in log2 of the concurrency, passes 0; levels in the bracket
    that are not sure are first made monotone (isotonic regression, weight n), for a bracket holds one crossing.
    """
    low, high = inside[0].level, inside[-1].level
    fit = isotonic_regression(
        [stat.mean for stat in inside], weights=[stat.n for stat in inside], increasing=direction == "up"
    )
    values, places = np.asarray(fit.x, dtype=float), [math.log2(stat.level) for stat in inside]
    sign = -1.0 if direction == "up" else 1.0
    last = max(i for i in range(len(values) - 1) if sign * values[i] > 0)
    share = values[last] / (values[last] - values[last + 1])
    exact = 2 ** (places[last] + share * (places[last + 1] - places[last]))
    point = min(max(math.floor(exact + ROUNDING), low), high - 1)
    return Crossing(float(point), (float(low), float(high - 1)), low, high, direction), float(exact)


def _sentence(status: BreakEvenStatus, levels: Sequence[LevelStat], signs: Signs, crossings: Sequence[Crossing]) -> str:
    top = levels[-1]
    if status is BreakEvenStatus.PAYS_THROUGHOUT:
        return f"{_gaining(levels, signs.levels_with(1))}: extend with --levels"
    if status is BreakEvenStatus.NEVER_PAYS:
        losses, best = signs.levels_with(-1), max(levels, key=lambda stat: stat.mean)
        sure = "at every level" if len(losses) == len(levels) else f"surely so at {_listed(losses)}"
        return (
            f"never pays off between {levels[0].level} and {top.level} concurrent requests ({sure}; at best "
            f"{math.exp(best.mean):.2f}x at {best.level})"
        )
    parts = [describe(crossing) for crossing in crossings]
    if len(parts) == 1:
        return parts[0]
    return "turns several times: " + ", then ".join(parts)


def _gaining(levels: Sequence[LevelStat], gains: Sequence[int]) -> str:
    """Where it surely gains, and at which levels it does not."""
    top, tested = levels[-1], [stat.level for stat in levels]
    ratio = f"{math.exp(top.mean):.2f}x"
    if len(tested) == 1:
        return f"gains at {top.level}, the only level measured ({ratio})"
    if untold := [level for level in tested if level not in gains]:
        return f"gains at {spans(gains, tested)} ({ratio} at {top.level}); {spans(untold, tested)} not told from 1.0"
    return f"pays off at every load up to {top.level} concurrent requests, still {ratio} at {top.level}"


def spans(levels: Sequence[int], tested: Sequence[int]) -> str:
    """`1 to 16, 64`: three or more tested levels in a row as one span."""
    places = {level: place for place, level in enumerate(sorted(tested))}
    rows: list[list[int]] = []
    for level in sorted(levels):
        if rows and places[level] == places[rows[-1][-1]] + 1:
            rows[-1].append(level)
        else:
            rows.append([level])
    return ", ".join(f"{row[0]} to {row[-1]}" if len(row) > 2 else _listed(row) for row in rows)


def describe(crossing: Crossing) -> str:
    """`pays off up to 12 concurrent requests (95 % CI 10 to 15)`, or the same for a crossing upwards."""
    bracket = f"({interval(crossing)})"
    if crossing.direction == "down":
        return f"pays off up to {crossing.concurrency:g} concurrent requests {bracket}"
    return f"costs up to {crossing.concurrency:g} concurrent requests and pays off above {bracket}"


def interval(crossing: Crossing) -> str:
    """`95 % CI 10 to 15` by a curve, else `bracket 8 to 15`: the same numbers as in every table."""
    kind = "95 % CI" if crossing.kind == "curve" else "bracket"
    return f"{kind} {crossing.ci95[0]:g} to {crossing.ci95[1]:g}"


def repeats_needed(stat: LevelStat, confidence: float = CONFIDENCE) -> int | None:
    """Repeats in all after which this level would be sure if mean and spread stayed; None if beyond MAX_REPEATS."""
    if stat.sd is None or stat.mean == 0:
        return MIN_N if stat.sd is None else None
    for n in range(max(MIN_N, stat.n + 1), MAX_REPEATS + 1):
        if t_quantile(n - 1, confidence) * stat.sd / math.sqrt(n) < abs(stat.mean):
            return n
    return None


def _unsettled(
    levels: Sequence[LevelStat], signs: Signs, pair_seconds: Mapping[int, float]
) -> tuple[str, dict[int, int]]:
    """What would settle it: in words, and as level → more repeats."""
    if not levels:
        return "no valid pair of cells, so nothing can be said; see the checks for the cause", {}
    unsure = [stat for stat in levels if signs.by_level[stat.level] == 0]
    needed = {stat.level: repeats_needed(stat) for stat in unsure}
    more = {stat.level: n - stat.n for stat in unsure if (n := needed[stat.level]) is not None and n > stat.n}
    advice = []
    if more:
        most = max(more.values())
        count = f"{most} more repeat{'s' if most > 1 else ''}"
        advice.append(f"measure {count} at {_listed(sorted(more))}" + _time(more, pair_seconds))
    draws = [level for level, n in needed.items() if n is None]
    if draws:
        advice.append(f"{_listed(draws)} cannot be told from 1.0 within {MAX_REPEATS} repeats")
    wanted: dict[int, int] = dict(more)
    gains = signs.levels_with(1)
    # A gain at the top needs no level above it while a lower one is in doubt.
    below = bool(gains) and gains[-1] == levels[-1].level
    if not advice or not (signs.levels_with(-1) or below):
        wanted[levels[-1].level * 2] = 0
        advice.append(f"add --levels {levels[-1].level * 2}")
    seen = _seen(signs)
    return f"not settled{seen}: {'; '.join(advice)}", wanted


def _seen(signs: Signs) -> str:
    for sign, word in ((1, "gains"), (-1, "costs")):
        if found := signs.levels_with(sign):
            how = "by the look of it" if signs.indicative else "surely"
            return f" ({how} {word} at {_listed(found)}, the rest lies within the noise)"
    return " (no level differs from 1.0 beyond the noise)"


def _time(more: Mapping[int, int], pair_seconds: Mapping[int, float]) -> str:
    if not all(level in pair_seconds for level in more):
        return ""
    return f" (about {sum(n * pair_seconds[level] for level, n in more.items()):.0f} s of measuring)"


def _listed(levels: Sequence[int]) -> str:
    return ", ".join(str(level) for level in levels)
