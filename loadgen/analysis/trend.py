"""Does a profile that learns across requests get faster from repeat to repeat? Cold and warm apart."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from scipy.special import stdtr

from loadgen.analysis.pairs import Pair
from loadgen.analysis.ratios import THROUGHPUT, log_ratios

LEARNERS = frozenset({"suffix"})
"""Methods that keep earlier responses: suffix decoding's global cache (h200.md, lesson 5)."""
MIN_PAIRS = 6


@dataclass(frozen=True)
class Trend:
    """The change of ln speed-up from one repeat to the next, over all levels."""

    per_repeat: float
    p: float
    """Two-sided, of no change."""
    pairs: int
    cold: float
    """Geometric mean over levels of the first repeat's speed-up."""
    warm: float
    """Of the last repeat's."""


def trend_over_repeats(levels: Mapping[int, Sequence[Pair]]) -> Trend | None:
    """The common slope of ln speed-up over the repeat's number, each level (and session) with a height of its own; None
    below six pairs or with one repeat.

    Least squares after each group's means are taken off; t with pairs − groups − 1 degrees of freedom.
    """
    groups: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for level, pairs in levels.items():
        for pair in pairs:
            for sample in log_ratios([pair], THROUGHPUT):
                groups.setdefault((level, pair.key.session), []).append((pair.key.repeat, sample.value))
    kept = [group for group in groups.values() if len({repeat for repeat, _ in group}) > 1]
    centred = [
        (repeat - fmean(r for r, _ in group), value - fmean(v for _, v in group))
        for group in kept
        for repeat, value in group
    ]
    degrees = len(centred) - len(kept) - 1
    if len(centred) < MIN_PAIRS or degrees < 1:
        return None
    spread = math.fsum(x * x for x, _ in centred)
    slope = math.fsum(x * y for x, y in centred) / spread
    rest = math.fsum((y - slope * x) ** 2 for x, y in centred)
    error = math.sqrt(rest / degrees / spread)
    p = float(2 * stdtr(degrees, -abs(slope) / error)) if error > 0 else float(slope == 0)
    cold, warm = (fmean(pick(group)[1] for group in kept) for pick in (min, max))
    return Trend(slope, p, len(centred), math.exp(cold), math.exp(warm))


def trend_note(trend: Trend) -> str:
    """One sentence."""
    if trend.p >= 0.05:
        return (
            f"no trend over repeats seen (p = {trend.p:.2f}, {trend.pairs} pairs): first repeat {trend.cold:.2f}x, "
            f"last {trend.warm:.2f}x"
        )
    way = "faster" if trend.per_repeat > 0 else "slower"
    return (
        f"gets {way} from repeat to repeat, by {abs(math.expm1(trend.per_repeat)):.1%} each (p = {trend.p:.3f}, "
        f"{trend.pairs} pairs): cold (first repeat) {trend.cold:.2f}x, warm (last) {trend.warm:.2f}x; the speed-ups "
        "above are between the two"
    )
