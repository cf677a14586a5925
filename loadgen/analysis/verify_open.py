"""An open loop across a schedule's edge: does a batch that wanders over it cost what a steady one does not?"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loadgen.analysis.verify_model import Claim, Role
from loadgen.analysis.verify_samples import Sample

BLOCKS = 6
"""Stretches of the run, each an independent unit: requests at the same time share their steps."""
MIN_PAIRS = 3


@dataclass(frozen=True)
class OpenRequest:
    """One request of an open loop: when the schedule wanted it, and its time per output token (None: not OK)."""

    prompt_id: str
    offset_s: float
    tpot_s: float | None


@dataclass(frozen=True)
class OpenRun:
    """One server under the same arrivals as the others."""

    profile: str
    edge: int
    rate_per_s: float
    length_s: float
    in_flight_mean: float
    requests: tuple[OpenRequest, ...]
    session: int = 0


def open_samples(claim: Claim, runs: Sequence[OpenRun]) -> tuple[Sample, ...]:
    """ln TPOT ratio, other / claimed, per stretch of the run, over requests that both served; for each other server."""
    by_role = {role: [run for run in runs if run.profile == name] for role, name in claim.arms.items()}
    claimed = by_role.get(Role.SCHEDULE, []) if claim.choice == "schedule" else []
    found = []
    for edge in sorted({run.edge for run in claimed}):
        ours = [run for run in claimed if run.edge == edge]
        for role, theirs in by_role.items():
            if role is Role.SCHEDULE:
                continue
            values = _paired(ours, [run for run in theirs if run.edge == edge])
            if values:
                seconds = math.fsum(run.length_s for run in ours) / BLOCKS
                place = f"open loop across {edge}"
                found.append(Sample(place, edge, Role.SCHEDULE, role, values, seconds, closed=False))
    return tuple(found)


def _paired(ours: Sequence[OpenRun], theirs: Sequence[OpenRun]) -> tuple[float, ...]:
    values: list[float] = []
    for own in ours:
        partner = next((run for run in theirs if run.session == own.session), None)
        if partner is not None:
            values += _blocks(own, partner)
    return tuple(values)


def _blocks(own: OpenRun, other: OpenRun) -> list[float]:
    known = _by_prompt(other)
    blocks: list[list[float]] = [[] for _ in range(BLOCKS)]
    for request in own.requests:
        theirs = known.get(request.prompt_id)
        if request.tpot_s and theirs:
            place = min(int(request.offset_s / own.length_s * BLOCKS), BLOCKS - 1)
            blocks[place].append(math.log(theirs / request.tpot_s))
    return [math.fsum(block) / len(block) for block in blocks if len(block) >= MIN_PAIRS]


def _by_prompt(run: OpenRun) -> Mapping[str, float]:
    return {request.prompt_id: request.tpot_s for request in run.requests if request.tpot_s}
