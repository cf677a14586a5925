"""The next cells worth measuring: only what narrows the break-even."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from loadgen.analysis.breakeven import repeats_needed
from loadgen.analysis.model import BreakEven, BreakEvenStatus, Crossing
from loadgen.analysis.signs import LevelStat

HALF_WIDTH = 0.10
"""Wanted half-width of a bracket, as a share of its middle (issue 4)."""


@dataclass(frozen=True)
class Proposal:
    """Levels to add, and levels that need more repeats with their number in all. Both empty: nothing is worth it."""

    levels: tuple[int, ...] = ()
    repeats: dict[int, int] = field(default_factory=dict)


def propose(
    verdict: BreakEven, stats: Sequence[LevelStat], *, highest: int, half_width: float = HALF_WIDTH
) -> Proposal:
    """What to measure next, up to concurrency `highest` (max-num-seqs).

    found: in each bracket wider than wanted, repeats for its unsure levels that can still become sure, else a level in
    its middle (geometric). pays_throughout and unsettled tops: the level doubles. inconclusive: repeats at unsure
    levels. never_pays: nothing. A caller that goes round must say how many looks it plans (`find_break_even(looks=…)`),
    or the error rate of the final verdict is not the stated one.
    """
    if verdict.status is BreakEvenStatus.NEVER_PAYS or not stats:
        return Proposal()
    unsure = [stat for stat in stats if stat.level not in (*verdict.sure_gains, *verdict.sure_losses)]
    levels: list[int] = []
    repeats: dict[int, int] = {}
    if verdict.status is BreakEvenStatus.FOUND:
        for crossing in verdict.crossings:
            _narrow(crossing, unsure, half_width, levels, repeats)
        return Proposal(tuple(levels), repeats)
    if verdict.status is BreakEvenStatus.INCONCLUSIVE:
        repeats = _repeats(unsure)
    top = max(stat.level for stat in stats)
    if top not in repeats and top not in verdict.sure_losses and top < highest:
        levels.append(min(2 * top, highest))
    return Proposal(tuple(levels), repeats)


def _narrow(
    crossing: Crossing, unsure: Sequence[LevelStat], half_width: float, levels: list[int], repeats: dict[int, int]
) -> None:
    low, high = crossing.level_below, crossing.level_above
    if high - low <= 1 or (high - low) / 2 <= half_width * math.sqrt(low * high):
        return
    inside = [stat for stat in unsure if low < stat.level < high]
    more = _repeats(inside)
    if more:
        repeats.update(more)
        return
    places = [low, *(stat.level for stat in inside), high]
    # Levels inside that no repeat can settle sit on the turn itself: bracket them from both sides.
    for first, second in ((places[0], places[1]), (places[-2], places[-1])):
        middle = round(math.sqrt(first * second))
        if first < middle < second and middle not in levels:
            levels.append(middle)


def _repeats(stats: Sequence[LevelStat]) -> dict[int, int]:
    needed = {stat.level: repeats_needed(stat) for stat in stats}
    return {stat.level: n for stat in stats if (n := needed[stat.level]) is not None and n > stat.n}
