"""From what one server carries to servers, GPUs, money and energy."""

import math
from dataclasses import replace

from loadgen.analysis.capacity_model import Demand, Fleet, Hardware, OperatingPoint

SECONDS_AN_HOUR = 3600.0
MILLION = 1e6
SLACK = 0.05
"""The queueing estimate against the simulator's truth at moderate load (docs/planning.md)."""


def wanted(demand: Demand) -> float:
    """The demand in its own unit: requests/s, or users."""
    return float(demand.users) if demand.users is not None else float(demand.rate_per_s or 0.0)


def servers_for(load: float, per_server: float) -> int:
    """Servers that carry the load; rounding noise of a division does not buy one more."""
    return max(1, math.ceil(load / per_server - 1e-9))


def fleet_of(demand: float, per_server: float, hardware: Hardware, at: OperatingPoint | None) -> Fleet:
    """The servers for a demand in the unit of `per_server`; `at` is one server without spares and headroom.

    Spares stand on top of the headroom: a failure must not eat it. Money and energy are those of the whole fleet,
    spares included, for they run.
    """
    bare = servers_for(demand, per_server)
    roomy = servers_for(demand * (1 + hardware.headroom), per_server)
    whole = roomy + hardware.spares
    gpus = whole * hardware.gpus_per_server
    tokens_per_s = at.tokens_per_s * bare if at else None
    cost = energy = None
    if tokens_per_s:
        million_h = MILLION / tokens_per_s / SECONDS_AN_HOUR
        cost = gpus * hardware.gpu_hour * million_h if hardware.gpu_hour is not None else None
        energy = gpus * hardware.gpu_watts / 1000 * million_h if hardware.gpu_watts is not None else None
    return Fleet(bare, roomy, whole, gpus, demand / gpus, tokens_per_s, cost, energy)


def with_range(
    fleet: Fleet, demand: float, carried: tuple[float, float | None, float | None], hardware: Hardware
) -> Fleet:
    """For (estimate, surely, at most) of one server: the fleet with its fewest and most GPUs.

    The fewest is one working server where no upper end is known: a lower bound of users is an upper bound of GPUs.
    """
    per_server, surely, at_most = carried
    least = fleet_of(demand, at_most or math.inf, hardware, None).gpus
    most = fleet_of(demand, surely, hardware, None).gpus if surely else None
    less = fleet_of(demand, per_server * (1 - SLACK), hardware, None).gpus
    return replace(fleet, gpus_least=min(least, fleet.gpus), gpus_most=most, gpus_if_less=less)
