"""Where one K ends and the next begins, on both axes: requests in flight, and requests per engine step."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from loadgen.analysis.batchmap import batch_at
from loadgen.profiles.model import BatchSchedule

TIE = math.log(1.02)
"""Gains below 2 % are ties: no re-measurement of a few minutes tells them apart (issue 4)."""
CLEARANCE = 0.10
"""Edges keep this share of a measured load away from it, where there is room: a batch that hovers at an edge changes
its K, and its CUDA graph, at every step (vllm#49986), and vLLM has no hysteresis."""


OUT = 10.0
"""In ln: further behind than any speed-up, so that an edge next to a load at which a setting is out stands there."""


@dataclass(frozen=True)
class Rung:
    """One K at one level: ln speed-up over the baseline, its standard error (None below n = 3), requests per step."""

    concurrency: int
    log_speedup: float
    standard_error: float | None
    batch: float | None
    n: int = 3
    moderated_error: float | None = None
    """The standard error drawn towards the other levels' (docs/method.md, part 3); None: as `standard_error`."""
    out: bool = False
    """It does not surely keep the limits at this load, while another setting does."""

    @property
    def value(self) -> float:
        """What is compared: ln speed-up, far behind every other one if the setting is out."""
        return self.log_speedup - (OUT if self.out else 0.0)


Curves = Mapping[int, Mapping[int, Rung]]
"""K → concurrency → what was measured."""


@dataclass(frozen=True)
class Ranges:
    """The same schedule on both axes, as (first, last, K)."""

    batches: BatchSchedule
    """In requests per engine step: what vLLM reads."""
    in_flight: BatchSchedule
    """In requests in flight at the client: what is measured, and what a router sees."""


def ranges(picks: Mapping[int, int], curves: Curves, max_num_seqs: int, *, clearance: bool = True) -> Ranges:
    """Neighbouring levels of one K merged. Between two levels with another K the edge stands where their curves cross;
    with `clearance` it is moved away from both levels as far as that costs no more than a tie. In requests per step by
    the batch map of the K that ends there; a range that has no whole batch of its own is left out there, and only there
    (`served` then says otherwise than `picks`). Both end at `max_num_seqs`, or at the highest level where that is more.
    """
    levels = sorted(picks)
    batches: list[tuple[int, int, int]] = []
    in_flight: list[tuple[int, int, int]] = []
    for low, high in itertools.pairwise(levels):
        k, next_k = picks[low], picks[high]
        if k == next_k:
            continue
        gap = _Gap.between(curves[k], curves[next_k], low, high)
        edge = gap.settled() if clearance else gap.crossing()
        _append(in_flight, edge, k)
        at = _batches(curves, k, next_k)
        last = whole_batch(batch_at(at, edge))
        if k > next_k and gap.at_high < -TIE:
            # The next level must not keep the K that loses there for being on the same whole batch.
            last = min(last, whole_batch(batch_at(at, high)) - 1)
        _append(batches, last, k)
    top = picks[levels[-1]]
    highest = whole_batch(batch_at(_batches(curves, top, max(curves)), levels[-1]))
    _append(batches, max(max_num_seqs, _next(batches), highest), top)
    _append(in_flight, max(max_num_seqs, levels[-1]), top)
    return Ranges(_merged(batches), _merged(in_flight))


def whole_batch(batch: float) -> int:
    """The number of requests that most steps have; a step has at least one."""
    return max(1, round(batch))


def served(batches: BatchSchedule, picks: Mapping[int, int], curves: Curves) -> dict[int, int]:
    """Concurrency → the K that the schedule gives there, by the batch of the K that is wanted there."""
    found = {}
    for level, k in picks.items():
        batch = whole_batch(batch_at(_batches(curves, k, max(curves)), level))
        found[level] = next((own for first, last, own in batches if first <= batch <= last), batches[-1][2])
    return found


@dataclass(frozen=True)
class _Gap:
    """Two neighbouring levels with another K: by how much the lower one's K leads, in ln, at either."""

    low: int
    high: int
    at_low: float
    at_high: float

    @classmethod
    def between(cls, ours: Mapping[int, Rung], theirs: Mapping[int, Rung], low: int, high: int) -> Self:
        lead = {level: ours[level].value - theirs[level].value for level in (low, high)}
        return cls(low, high, lead[low], lead[high])

    def lead(self, concurrency: int) -> float:
        """Linear in log2 of the concurrency."""
        share = math.log(concurrency / self.low) / math.log(self.high / self.low)
        return self.at_low + share * (self.at_high - self.at_low)

    def crossing(self) -> int:
        """The last concurrency for the K that ends here, from `low` to `high` − 1."""
        # Ties go to the smaller K, so that the curves need not cross in between: the edge then stands beside the tie.
        if not self.at_low > 0 > self.at_high:
            return self.high - 1 if self.at_high >= 0 else self.low
        exact = self.low * math.exp(self.at_low / (self.at_low - self.at_high) * math.log(self.high / self.low))
        return min(max(math.floor(exact + 1e-9), self.low), self.high - 1)

    def settled(self) -> int:
        """The crossing, moved away from the levels on both sides while the gap has room and the loss stays a tie."""
        edge = self.crossing()
        least = math.ceil(self.low * (1 + CLEARANCE))
        most = math.floor(self.high * (1 - CLEARANCE)) - 1
        if least > most:
            return edge
        while edge < least and abs(self.lead(edge + 1)) <= TIE:
            edge += 1
        while edge > most and abs(self.lead(edge)) <= TIE:
            edge -= 1
        return edge


def _append(found: list[tuple[int, int, int]], last: int, k: int) -> None:
    first = _next(found)
    if last >= first:
        found.append((first, last, k))


def _next(found: Sequence[tuple[int, int, int]]) -> int:
    return found[-1][1] + 1 if found else 1


def _merged(found: Sequence[tuple[int, int, int]]) -> BatchSchedule:
    """Neighbours of one K as one: a range that had no room is gone, and those around it may have the same K."""
    merged: list[tuple[int, int, int]] = []
    for first, last, k in found:
        if merged and merged[-1][2] == k:
            merged[-1] = (merged[-1][0], last, k)
        else:
            merged.append((first, last, k))
    return tuple(merged)


def _batches(curves: Curves, k: int, next_k: int) -> list[tuple[int, float | None]]:
    """(concurrency, batch) of the K that ends at an edge; of its neighbour where it has none (K = 0 not measured)."""
    own = [(point.concurrency, point.batch) for point in curves[k].values()]
    if any(batch is not None for _, batch in own):
        return own
    return [(point.concurrency, point.batch) for point in curves[next_k].values()]
