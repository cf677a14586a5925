"""One setting under one condition: its levels, what it carries, its fleet, and the same with a weaker acceptance."""

from collections.abc import Sequence
from dataclasses import dataclass

from loadgen.analysis.capacity_change import weaken, weaker_factor
from loadgen.analysis.capacity_fleet import fleet_of, servers_for, wanted, with_range
from loadgen.analysis.capacity_model import (
    Capacity,
    Ceiling,
    Demand,
    Fleet,
    Hardware,
    LoadPoint,
    Offer,
    OpenPoint,
    OpenVerdict,
    Slo,
    Verdict,
    Weaker,
)
from loadgen.analysis.capacity_search import (
    LEVELS,
    MEASURED,
    OBJECTIVES,
    capacity,
    ceiling_of,
    judge_level,
    judge_open,
    operate,
    station_of,
)
from loadgen.store.model import Condition


@dataclass(frozen=True)
class Wish:
    """What is asked of every setting."""

    slos: tuple[Slo, ...]
    demand: Demand | None
    hardware: Hardware


@dataclass(frozen=True)
class Setting:
    """One setting's measured loads."""

    name: str
    detail: str
    points: tuple[LoadPoint, ...]
    opened: tuple[OpenPoint, ...] = ()
    drafts: bool = False


def offer(condition: Condition, setting: Setting, wish: Wish, share: float = 1.0) -> Offer:
    """The setting's part of the plan; `share` is this workload's part of the demand."""
    levels = tuple(judge_level(point, wish.slos) for point in setting.points)
    opened = tuple(judge_open(point, wish.slos) for point in setting.opened)
    carried, fleet = _carried(setting.points, opened, wish, share)
    return Offer(
        condition=condition,
        setting=setting.name,
        detail=setting.detail,
        levels=levels,
        ceiling=_ceiling(setting.points, wish.slos),
        opened=opened,
        capacity=carried,
        fleet=fleet,
        weaker=_weaker(setting, wish, share),
    )


def share_of(demand: Demand, share: float) -> Demand:
    """This part of the demand: of its rate, or of its users."""
    if demand.users is not None:
        return Demand(users=max(1, round(demand.users * share)), think_s=demand.think_s, source=demand.source)
    return Demand(rate_per_s=(demand.rate_per_s or 0.0) * share, source=demand.source)


def _ceiling(points: Sequence[LoadPoint], slos: Sequence[Slo]) -> Ceiling:
    rows = [(float(v.level), v.verdict, v.findings) for v in (judge_level(point, slos) for point in points)]
    return ceiling_of(rows, len(slos)) or Ceiling(None, None, 0.0)


def _carried(
    points: Sequence[LoadPoint], opened: Sequence[OpenVerdict], wish: Wish, share: float
) -> tuple[Capacity | None, Fleet | None]:
    """What a server carries, and the servers for the demand."""
    station = station_of(points, wish.slos) if points else None
    if station is None or wish.demand is None:
        return None, None
    own = share_of(wish.demand, share)
    carried = capacity(station, wish.slos, own)
    if own.users is None and opened:
        carried = _with_measured(carried, opened, wish.slos)
    if carried.per_server is None:
        return carried, None
    bare = servers_for(wanted(own), carried.per_server)
    at = operate(station, wish.slos, own, bare)
    fleet = fleet_of(wanted(own), carried.per_server, wish.hardware, at)
    bounds = (carried.per_server, carried.surely, carried.at_most)
    return carried, with_range(fleet, wanted(own), bounds, wish.hardware)


def _with_measured(estimate: Capacity, opened: Sequence[OpenVerdict], slos: Sequence[Slo]) -> Capacity:
    """Measured rates come before the estimate, but where they only say that it may be right: all of them hold and it
    lies above, or none does and it lies below.
    """
    measured = ceiling_of([(one.rate_per_s, one.verdict, one.findings) for one in opened], len(slos))
    promised = estimate.per_server
    if measured is None:
        return estimate
    if measured.by_estimate is None:
        below = promised is not None and promised < opened[0].rate_per_s
        return estimate if below else Capacity(None, estimate.unit, MEASURED, OBJECTIVES, None)
    sure = measured.surely
    if measured.open_ended:
        above = promised is not None and promised >= measured.top
        return estimate if above else Capacity(measured.top, estimate.unit, MEASURED, LEVELS, estimate.at, sure)
    missed = next((one.rate_per_s for one in opened if one.verdict is Verdict.MISSED), None)
    return Capacity(measured.by_estimate, estimate.unit, MEASURED, OBJECTIVES, estimate.at, sure, missed)


def _weaker(setting: Setting, wish: Wish, share: float) -> Weaker | None:
    """From closed-loop levels alone: what was measured in open loop has the old acceptance in it."""
    if not setting.drafts:
        return None
    changed = [(point, weaken(point)) for point in setting.points]
    if all(after is None for _, after in changed):
        return None
    points = tuple(after or before for before, after in changed)
    carried, fleet = _carried(points, (), wish, share)
    gains = [point.tokens_per_step for point in setting.points if (point.tokens_per_step or 0.0) > 1.0]
    factor = weaker_factor(sum(gain for gain in gains if gain) / len(gains))
    return Weaker(factor, _ceiling(points, wish.slos), carried, fleet)
