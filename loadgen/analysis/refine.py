"""The next cells worth measuring: only what narrows the break-even (docs/method.md, part 3)."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from loadgen.analysis.breakeven import MAX_REPEATS, repeats_needed
from loadgen.analysis.model import BreakEven, BreakEvenStatus, Crossing
from loadgen.analysis.ratios import CONFIDENCE, MIN_N
from loadgen.analysis.signs import LevelStat

HALF_WIDTH = 0.10
"""Wanted half-width of the interval, as a share of the crossing (issue 4)."""
LOOKS = 8
"""Looks at the data that are planned, the last one included: the 5 % of wrong signs are spread over them."""
ASIDE = 0.2
"""Most octaves between the crossing and the levels whose repeats narrow it."""
CLOSER = 0.75
"""They lie at this share of the half-width to either side: the nearer, the less hangs on the curve between them."""
FLANK = 0.25
"""Octaves within which there must be a level with three repeats on each side of a crossing, however narrow its interval
is: what stops for being narrow by luck is else found where a level happens to lie (issue 4)."""
MARGIN = 0.25
"""A new level lies where the line through its neighbours passes 0, but leaves this share of their gap to either side:
a cliff is closed in at least so fast."""
TESTED = 3
"""Levels that typically have three repeats: Holm's first step divides by them."""
STEP = 8
"""Most pairs added at one crossing between two looks."""


@dataclass(frozen=True)
class Proposal:
    """Repeats in all that each level should have; levels not measured yet are new. Empty: nothing is worth it."""

    repeats: dict[int, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.repeats)


def half_width(crossing: Crossing) -> float:
    """Half the interval's width as a share of the crossing; 0 for one whole number."""
    if crossing.ci95[0] == crossing.ci95[1]:
        return 0.0
    if crossing.exact is not None and crossing.exact_ci95 is not None:
        return (crossing.exact_ci95[1] - crossing.exact_ci95[0]) / 2 / crossing.exact
    return (crossing.level_above - crossing.level_below) / 2 / math.sqrt(crossing.level_below * crossing.level_above)


def propose(verdict: BreakEven, stats: Sequence[LevelStat], *, highest: int, wanted: float = HALF_WIDTH) -> Proposal:
    """What to measure next, up to concurrency `highest` (max-num-seqs).

    While the highest level leans to a gain, it doubles. A level that decides the status (beside a change of sign, the
    highest, the best one of a profile that only loses) gets repeats until it is sure. A crossing that is found gets a
    level inside its bracket until a curve can be drawn, then a flank on either side, and repeats beside it until its
    half-width is `wanted`.
    A caller that goes round must say how many looks it plans (`find_break_even(looks=…)`), or the error rate of the
    final verdict is not the stated one.
    """
    stats = sorted(stats, key=lambda stat: stat.level)
    if not stats:
        return Proposal()
    repeats: dict[int, int] = {}
    top = stats[-1]
    if top.mean > 0 and top.level < highest and top.level not in verdict.sure_losses:
        repeats[min(2 * top.level, highest)] = 1
    if verdict.status is BreakEvenStatus.FOUND and not verdict.indicative:
        for crossing in verdict.crossings:
            _narrow(crossing, stats, wanted, repeats)
    else:
        _settle(verdict, stats, repeats)
    have = {stat.level: stat.n for stat in stats}
    return Proposal({level: n for level, n in sorted(repeats.items()) if n > have.get(level, 0)})


def _settle(verdict: BreakEven, stats: Sequence[LevelStat], repeats: dict[int, int]) -> None:
    """Repeats at the levels on which the status hangs."""
    sure = () if verdict.indicative else (*verdict.sure_gains, *verdict.sure_losses)
    gains, losses = [s for s in stats if s.mean > 0], [s for s in stats if s.mean <= 0]
    deciding = []
    if gains and losses:
        # The nearest level on either side of a change of sign that can become sure.
        for below, above in itertools.pairwise(stats):
            if (below.mean > 0) != (above.mean > 0):
                deciding += [
                    _first_able([s for s in stats if s.level <= below.level][::-1], below.mean > 0, sure),
                    _first_able([s for s in stats if s.level >= above.level], above.mean > 0, sure),
                ]
    else:
        deciding = [stats[-1] if gains else max(losses, key=lambda stat: stat.mean)]
    for stat in deciding:
        if stat.level not in sure and (n := _more(stat)) is not None:
            repeats[stat.level] = max(repeats.get(stat.level, 0), n)


def _first_able(outward: Sequence[LevelStat], gains: bool, sure: Sequence[int]) -> LevelStat:
    """The first level outward of that sign that is sure or can become so."""
    same = [stat for stat in outward if (stat.mean > 0) == gains]
    return next((stat for stat in same if stat.level in sure or _more(stat) is not None), same[0])


def _more(stat: LevelStat) -> int | None:
    """Repeats in all that the level should have at the next look; None if it would not get sure within sense."""
    if stat.n < MIN_N:
        return MIN_N
    needed = repeats_needed(stat, 1 - (1 - CONFIDENCE) / LOOKS / TESTED)
    return None if needed is None else min(max(needed, stat.n + 2), stat.n + STEP // 2)


def _narrow(crossing: Crossing, stats: Sequence[LevelStat], wanted: float, repeats: dict[int, int]) -> None:
    """Repeats on both sides of a curve's crossing until it is narrow, and flanks at all events; else a new level."""
    width = half_width(crossing)
    if crossing.exact is None:
        if width > wanted:
            _bisect(crossing, stats, repeats)
        return
    have = {stat.level: stat.n for stat in stats}
    aside = min(CLOSER * math.log2(1 + width), ASIDE)
    low = min(max(round(crossing.exact * 2**-aside), 1), math.floor(crossing.exact))
    high = max(round(crossing.exact * 2**aside), low + 1)
    if width > wanted:
        near = sum(n for level, n in have.items() if abs(math.log2(level / crossing.exact)) <= 2 * ASIDE)
        more = min(max(2, math.ceil(max(near, 2 * MIN_N) * ((width / wanted) ** 2 - 1))), STEP)
        for level, share in ((low, more // 2), (high, more - more // 2)):
            repeats[level] = min(have.get(level, 0) + share, MAX_REPEATS)
    for level, side in ((low, -1), (high, 1)):
        if not any(n >= MIN_N and 0 <= side * math.log2(other / crossing.exact) <= FLANK for other, n in have.items()):
            repeats[level] = max(repeats.get(level, 0), have.get(level, 0), MIN_N)


def _bisect(crossing: Crossing, stats: Sequence[LevelStat], repeats: dict[int, int]) -> None:
    """A level in the gap where the sign changes; where there is none between, repeats at its ends."""
    inside = [stat for stat in stats if crossing.level_below <= stat.level <= crossing.level_above]
    falls = crossing.direction == "down"
    below, above = next(
        (a, b) for a, b in itertools.pairwise(inside) if (a.mean > 0) == falls and (b.mean > 0) != falls
    )
    share = min(max(below.mean / (below.mean - above.mean), MARGIN), 1 - MARGIN)
    middle = round(below.level ** (1 - share) * above.level**share)
    if below.level < middle < above.level:
        repeats[middle] = MIN_N
        return
    for stat in (below, above):
        if crossing.level_below < stat.level < crossing.level_above and stat.n < MAX_REPEATS:
            repeats[stat.level] = min(stat.n + 2, MAX_REPEATS)
