"""Which levels surely gain and which surely lose (docs/method.md, part 3)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy.special import stdtr

from loadgen.analysis.moderation import Spread, moderated
from loadgen.analysis.ratios import CONFIDENCE, MIN_N

INDICATIVE_MARGIN = math.log(1.05)
"""Below n = 3 a ratio within 5 % of 1 is never called a gain or a loss."""
INDICATIVE_SPREADS = 2.0
"""Nor one within two pooled standard deviations, where n = 2 shows any."""


@dataclass(frozen=True)
class LevelStat:
    """One level's log ratio over its independent units."""

    level: int
    mean: float
    n: int
    sd: float | None


@dataclass(frozen=True)
class Signs:
    """+1 sure gain, −1 sure loss, 0 neither, per level; and how that was decided."""

    by_level: Mapping[int, int]
    indicative: bool

    def levels_with(self, sign: int) -> tuple[int, ...]:
        """Levels of that sign, ascending."""
        return tuple(sorted(level for level, own in self.by_level.items() if own == sign))


def sure_signs(levels: Sequence[LevelStat], *, looks: int = 1) -> Signs:
    """The sign of every level.

    From n = 3 on: two-sided t tests of ln ratio = 0 with moderated variances, Holm's step-down over the levels at 5 %,
    so that the chance of even one wrong sign among all levels stays below 5 % (Holm 1979; directions: Shaffer 1980).
    `looks` is how often the data are planned to be looked at before the verdict stands (`--refine`): the 5 % are spread
    evenly over them (Bonferroni). Levels below n = 3 are never sure. If no level has n = 3, the indicative rule holds
    for all.
    """
    tested = [stat for stat in levels if stat.n >= MIN_N and stat.sd is not None]
    if not tested:
        return Signs(_indicative(levels), indicative=True)
    signs = {stat.level: 0 for stat in levels}
    spreads = moderated([Spread(stat.level, stat.sd**2, stat.n - 1) for stat in tested if stat.sd is not None])
    ranked = sorted(
        ((p_value(stat, spread), stat) for stat, spread in zip(tested, spreads, strict=True)),
        key=lambda pair: (pair[0], pair[1].level),
    )
    for place, (p, stat) in enumerate(ranked):
        if p > (1 - CONFIDENCE) / looks / (len(ranked) - place):
            break
        signs[stat.level] = 1 if stat.mean > 0 else -1
    return Signs(signs, indicative=False)


def p_value(stat: LevelStat, spread: Spread) -> float:
    """Two-sided p of ln ratio = 0; without any spread 0 or 1."""
    if spread.variance <= 0:
        return 1.0 if stat.mean == 0 else 0.0
    t = abs(stat.mean) / math.sqrt(spread.variance / stat.n)
    return float(2 * stdtr(spread.degrees, -t))


def _indicative(levels: Sequence[LevelStat]) -> dict[int, int]:
    known = [stat.sd**2 for stat in levels if stat.sd is not None]
    spread = math.sqrt(math.fsum(known) / len(known)) if known else 0.0
    margin = max(INDICATIVE_MARGIN, INDICATIVE_SPREADS * spread)
    return {stat.level: (stat.mean > margin) - (stat.mean < -margin) for stat in levels}
