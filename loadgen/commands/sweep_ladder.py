"""A ladder of K: the profiles that `--k 1,2,4` makes of each profile, kept in the run folder's `profiles/`."""

from dataclasses import dataclass

from loadgen.analysis.capability import SCHEDULE, ability
from loadgen.analysis.ladder import LadderArm
from loadgen.analysis.recommendation_advice import DEFAULT_END
from loadgen.commands import options
from loadgen.errors import UsageError
from loadgen.profiles.derive import with_constant_schedule, with_k
from loadgen.profiles.model import ServerProfile

AUTO = "auto"
"""The profile's own K and its halves, down to 1."""
HALF = "half"
"""The profile's own K and its half: for a first look."""


@dataclass(frozen=True)
class Ladder:
    """Derived profiles, what each one is, and what is to be said of them."""

    profiles: tuple[ServerProfile, ...] = ()
    arms: dict[str, LadderArm] | None = None
    warnings: tuple[str, ...] = ()


def make_ladder(
    sources: tuple[ServerProfile, ...], k: str, *, schedule_costs: bool, version: str | None = None
) -> Ladder:
    """A static server for each K, and with `schedule_costs` each K and K = 0 as a constant schedule, where the method
    and the version (None: not known yet) can obey one. UsageError for a profile without speculation.
    """
    profiles: list[ServerProfile] = []
    arms: dict[str, LadderArm] = {}
    warnings: list[str] = []
    for source in sources:
        wanted = _wanted(source, k)
        for one in wanted:
            _add(with_k(source, one), LadderArm(source.name, one), profiles, arms)
        if not schedule_costs:
            continue
        able = ability(source.method, version, _whole(source, "data-parallel-size"))
        if able.setting != SCHEDULE:
            warnings.append(f"{source.name}: schedules are not measured. {able.reason}")
            continue
        end = _whole(source, "max-num-seqs") or DEFAULT_END
        for one in (0, *wanted):
            derived = with_constant_schedule(source, one, wanted[-1], end)
            _add(derived, LadderArm(source.name, one, constant_schedule=True), profiles, arms)
    return Ladder(tuple(profiles), arms, tuple(warnings))


def _add(profile: ServerProfile, arm: LadderArm, profiles: list[ServerProfile], arms: dict[str, LadderArm]) -> None:
    profiles.append(profile)
    arms[profile.name] = arm


def _wanted(source: ServerProfile, k: str) -> tuple[int, ...]:
    if source.speculative is None:
        raise UsageError(f"Profile {source.name} does not speculate, so that --k has nothing to vary.")
    if k not in (AUTO, HALF):
        return tuple(sorted(set(options.counts(k, "--k"))))
    found = [source.speculative.num_speculative_tokens]
    while found[0] > 1 and (k == AUTO or len(found) < 2):
        found.insert(0, found[0] // 2)
    return tuple(found)


def _whole(profile: ServerProfile, key: str) -> int | None:
    value = profile.settings.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
