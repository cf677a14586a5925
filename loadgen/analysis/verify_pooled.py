"""What a run and its verification say together of the static K beside no speculation, and where that corrects the run.

The verdict rests on the verification's cells alone: the run's own cells made the claim. But what is said of a load must
not contradict what was measured there again (docs/method.md, part 9).
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from loadgen.analysis.model import BreakEven, BreakEvenStatus
from loadgen.analysis.schedule import noise
from loadgen.analysis.schedule_edges import Rung
from loadgen.analysis.verify_model import StaticGain
from loadgen.profiles.model import BatchSchedule


@dataclass(frozen=True)
class Pooled:
    """ln speed-up of the static K at one load that was measured again, with the run's own cells where there are any."""

    concurrency: int
    log_speedup: float
    sign: int
    """1 a gain beyond noise, -1 a loss beyond noise, 0 neither."""

    @property
    def words(self) -> str:
        """`1.13x at 15`."""
        return f"{math.exp(self.log_speedup):.2f}x at {self.concurrency}"


def pooled(again: Iterable[StaticGain], run: Iterable[Rung]) -> dict[int, Pooled]:
    """Load → both measurements together, weighted by their precision; the run's levels that were not measured again are
    left out.
    """
    before = {rung.concurrency: rung for rung in run}
    found = {}
    for gain in again:
        rung = Rung(gain.concurrency, gain.log_ratio, gain.standard_error, None, gain.n)
        rung = _together(rung, before.get(gain.concurrency))
        beyond = abs(rung.log_speedup) > noise(rung, Rung(rung.concurrency, 0.0, 0.0, None))
        sign = int(math.copysign(1, rung.log_speedup)) if beyond else 0
        found[gain.concurrency] = Pooled(gain.concurrency, rung.log_speedup, sign)
    return found


def _together(again: Rung, run: Rung | None) -> Rung:
    ours = again.standard_error
    theirs = None if run is None else run.standard_error if run.moderated_error is None else run.moderated_error
    if run is None or not ours or not theirs:
        return again
    weight, other = ours**-2, theirs**-2
    mean = (weight * again.log_speedup + other * run.log_speedup) / (weight + other)
    return Rung(again.concurrency, mean, (weight + other) ** -0.5, None, again.n + run.n)


def corrected(
    in_flight: BatchSchedule, tested: Sequence[int], static_k: int, found: Mapping[int, Pooled]
) -> tuple[BatchSchedule, tuple[Pooled, ...]]:
    """The ranges with every load that was refuted moved to the other side, and those loads: K = 0 where the static K
    gains beyond noise, or the static K where it costs. An edge between two loads stays unless one of them moved; then
    it stands beside the one that did.
    """
    changes = {}
    for level, one in sorted(found.items()):
        k = k_at(in_flight, level)
        if (k == 0 and one.sign > 0) or (k == static_k and one.sign < 0):
            changes[level] = one
    if not changes or not static_k:
        return in_flight, ()
    points = sorted({*tested, *found})
    ks = {level: k_at(in_flight, level) for level in points} | {
        level: static_k if one.sign > 0 else 0 for level, one in changes.items()
    }
    edges = {last for _, last, _ in in_flight[:-1]}
    ranges: list[tuple[int, int, int]] = []
    first = 1
    for low, high in itertools.pairwise(points):
        if ks[low] == ks[high]:
            continue
        old = [edge for edge in edges if low <= edge < high]
        kept = old[0] if old and low not in changes and high not in changes else None
        last = kept if kept is not None else low if low in changes else high - 1
        ranges.append((first, last, ks[low]))
        first = last + 1
    ranges.append((first, max(in_flight[-1][1], first), ks[points[-1]]))
    return tuple(ranges), tuple(changes.values())


def k_at(in_flight: BatchSchedule, concurrency: int) -> int:
    """The K that serves so many requests in flight."""
    return next((k for _, last, k in in_flight if concurrency <= last), in_flight[-1][2])


def refuted(verdict: BreakEven, found: Mapping[int, Pooled]) -> tuple[Pooled, ...]:
    """The loads measured again at which a break-even, with its interval, says the opposite."""
    return tuple(one for level, one in sorted(found.items()) if one.sign * _side(verdict, level) < 0)


def _side(verdict: BreakEven, level: int) -> int:
    """1 where it says that speculation pays, -1 where it costs, 0 where it says nothing (inside an interval)."""
    if verdict.status is BreakEvenStatus.PAYS_THROUGHOUT:
        return 1
    if verdict.status is BreakEvenStatus.NEVER_PAYS:
        return -1
    if verdict.status is BreakEvenStatus.INCONCLUSIVE or not verdict.crossings:
        return 0
    if any(low <= level <= high for low, high in (one.ci95 for one in verdict.crossings)):
        return 0
    side = 1 if verdict.crossings[0].direction == "down" else -1
    passed = sum(level > one.ci95[1] for one in verdict.crossings)
    return -side if passed % 2 else side
