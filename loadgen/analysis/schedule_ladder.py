"""Several K of one method in one run: which profile is which rung, and the schedule that follows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loadgen.analysis.goal import SloTable
from loadgen.analysis.ladder import LadderArm
from loadgen.analysis.model import ConditionFinding, LevelFinding, ProfileFinding
from loadgen.analysis.schedule import Schedule, make_schedule, rungs
from loadgen.analysis.schedule_edges import Rung
from loadgen.store.model import Condition


@dataclass(frozen=True)
class LadderFinding:
    """One method's ladder under one condition."""

    condition: Condition
    of: str
    method: str
    arms: Mapping[str, LadderArm]
    schedule: Schedule
    """From the constant schedules where they were measured, else from the static servers."""
    by_static: Schedule
    """From the static servers alone: which K each load wants, without what a schedule costs."""
    objective: str = "throughput"
    unsettled: tuple[int, ...] = ()
    """Levels that were measured and carry no verdict for some K: nothing is claimed there."""

    slo: SloTable | None = None
    """The limits within which the objective counts."""
    against: str = "baseline"

    @property
    def costs_measured(self) -> bool:
        """True if the schedule was made from constant schedules, not from static servers."""
        return any(arm.constant_schedule for arm in self.arms.values())


@dataclass(frozen=True)
class _Limits:
    slo: SloTable | None
    against: str

    def out(self, condition: Condition, profile: str, levels: Sequence[LevelFinding]) -> frozenset[int]:
        """The levels at which the profile does not surely keep the limits."""
        if self.slo is None:
            return frozenset()
        found = {level.concurrency for level in levels}
        return frozenset(level for level in found if not self.slo.met(condition, profile, level))


def ladder_findings(
    conditions: Sequence[ConditionFinding],
    ladder: Mapping[str, LadderArm],
    *,
    max_num_seqs: int,
    objective: str = "throughput",
    slo: SloTable | None = None,
    against: str = "baseline",
) -> tuple[LadderFinding, ...]:
    """The schedule of each method under each condition; one whose rungs share no level is left out. With `slo` only
    what surely keeps the limits at a load counts there.
    """
    limits = _Limits(slo, against)
    found = []
    for condition in conditions:
        for of in dict.fromkeys(arm.of for arm in ladder.values()):
            profiles = [p for p in condition.profiles if p.profile in ladder and ladder[p.profile].of == of]
            one = _finding(condition.condition, of, profiles, ladder, max_num_seqs, objective, limits)
            if one is not None:
                found.append(one)
    return tuple(found)


def _finding(
    condition: Condition,
    of: str,
    profiles: Sequence[ProfileFinding],
    ladder: Mapping[str, LadderArm],
    max_num_seqs: int,
    objective: str,
    limits: _Limits,
) -> LadderFinding | None:
    static: dict[int, tuple[Rung, ...]] = {}
    constant: dict[int, tuple[Rung, ...]] = {}
    for profile in profiles:
        arm = ladder[profile.profile]
        (constant if arm.constant_schedule else static)[arm.k] = rungs(
            profile.levels, objective, limits.out(condition, profile.profile, profile.levels)
        )
    if not static:
        return None
    plain = limits.out(condition, limits.against, [level for profile in profiles for level in profile.levels])
    by_static = make_schedule(static, max_num_seqs=max_num_seqs, plain_out=plain)
    schedule = (
        make_schedule(constant, max_num_seqs=max_num_seqs, static=static, plain_out=plain) if constant else by_static
    )
    if schedule is None or by_static is None:
        return None
    levels = {level.concurrency for profile in profiles for level in profile.levels}
    unsettled = tuple(sorted(levels - {level.concurrency for level in schedule.levels}))
    arms = {profile.profile: ladder[profile.profile] for profile in profiles}
    return LadderFinding(
        condition, of, profiles[0].method, arms, schedule, by_static, objective, unsettled, limits.slo, limits.against
    )
