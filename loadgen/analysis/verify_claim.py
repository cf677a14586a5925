"""From advice to the claim that is tested, and to the loads at which it is."""

from collections.abc import Sequence
from dataclasses import replace

from loadgen.analysis.goal import Goal
from loadgen.analysis.recommendation_advice import Advice, edges_of
from loadgen.analysis.schedule import Choice, make_schedule, standard_error_of
from loadgen.analysis.schedule_edges import Rung
from loadgen.analysis.verify_model import Claim, Role
from loadgen.profiles.model import BatchSchedule

DEFAULT = Goal()
SIDES = (-1, 1)
"""Loads beside an edge that are measured too."""


def make_claim(advice: Advice, arms: dict[Role, str], goal: Goal = DEFAULT) -> Claim:
    """What the advice says, with the profile that plays each role."""
    return Claim(
        choice=advice.choice,
        profile=advice.profile,
        condition=advice.condition,
        static_k=advice.static_k,
        schedule=advice.ranges if Role.SCHEDULE in arms else (),
        in_flight=advice.in_flight,
        edges=advice.edges,
        arms=arms,
        objective=goal.objective,
        slos=goal.slos,
        unmet=advice.unmet,
        tested=advice.tested,
        setting=advice.recommendation.setting,
        value=advice.recommendation.value,
    )


def tested_levels(levels: Sequence[int], edges: Sequence[int]) -> tuple[int, ...]:
    """Every level of the run, and the loads next to each edge on both sides."""
    beside = {edge + side for edge in edges for side in SIDES if edge + side >= 1}
    return tuple(sorted({*levels, *beside}))


def other_claims(claim: Claim, table: dict[int, tuple[float, ...]], end: int) -> tuple[Claim, ...]:
    """The other things that could be claimed of the same servers, simplest first; `table` is level → ln(static / none).

    The pools' threshold is made anew from these figures.
    """
    found = []
    if Role.STATIC in claim.arms:
        always: BatchSchedule = ((1, end, claim.static_k),)
        found.append(replace(claim, choice=Choice.STATIC, in_flight=always, edges=()))
    found.append(replace(claim, choice=Choice.NONE, in_flight=((1, end, 0),), edges=()))
    if Role.SCHEDULE in claim.arms:
        found.append(replace(claim, choice=Choice.SCHEDULE))
    pools = _pools(table, claim.static_k, end)
    if len(pools) > 1:
        found.append(replace(claim, choice=Choice.TWO_POOLS, in_flight=pools, edges=edges_of(pools)))
    return tuple(one for one in found if one.choice is not claim.choice or one.in_flight != claim.in_flight)


def _pools(table: dict[int, tuple[float, ...]], static_k: int, end: int) -> BatchSchedule:
    curve = [Rung(level, *standard_error_of(values), None) for level, values in sorted(table.items())]
    made = make_schedule({static_k: curve}, max_num_seqs=end) if curve and static_k else None
    return made.pools_in_flight if made else ()
