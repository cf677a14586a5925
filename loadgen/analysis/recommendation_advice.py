"""What is advised, in a form that `loadgen verify` can put to the test."""

from dataclasses import dataclass

from loadgen.analysis.model import Recommendation, ScheduleEdges
from loadgen.analysis.schedule import Choice
from loadgen.profiles.model import BatchSchedule
from loadgen.store.model import Condition

DEFAULT_END = 256
"""Where a schedule's last range ends if max-num-seqs is not known; vLLM carries the last K on anyway."""


@dataclass(frozen=True)
class Advice:
    """A recommendation with the claim behind it."""

    recommendation: Recommendation
    choice: Choice
    profile: str
    """The profile that speculates, by the name of its file."""
    condition: Condition
    static_k: int
    """The best static K: what is claimed, or what the claim is compared with."""
    ranges: BatchSchedule
    """The schedule in requests per step; one range where there is none worth trying."""
    in_flight: BatchSchedule
    """What is claimed to be best by requests in flight: (first, last, K)."""
    edges: tuple[int, ...] = ()
    """The last requests in flight of each range of `in_flight` or of the schedule that is put to the test."""
    can_schedule: bool = False
    """This method and version can obey a schedule, so that it is measured too."""
    unmet: tuple[int, ...] = ()
    """Loads at which no setting surely keeps the limits."""
    tested: tuple[int, ...] = ()


def edges_of(in_flight: BatchSchedule) -> tuple[int, ...]:
    """The last load of each range but the last."""
    return tuple(last for _, last, _ in in_flight[:-1])


def schedule_edges(advice: Advice) -> ScheduleEdges | None:
    """The edges of the schedule on both axes; None where no schedule is advised.

    Ranges that fall on their predecessor by requests per step are merged there and not by requests in flight: such a
    schedule has no edge-by-edge map, and gives None.
    """
    batches, in_flight = advice.ranges, advice.in_flight
    if advice.choice is not Choice.SCHEDULE or [k for *_, k in batches] != [k for *_, k in in_flight]:
        return None
    places = tuple(zip(edges_of(batches), edges_of(in_flight), strict=True))
    return ScheduleEdges(advice.profile, advice.condition, places)
