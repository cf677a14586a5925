"""What a run is asked to be best at: `--objective` and `--slo`, read, stored, and judged from its requests."""

from dataclasses import replace

from loadgen.analysis.goal import OBJECTIVES, SETTING, Goal, SloTable, goal_of, slo_table
from loadgen.commands import units
from loadgen.errors import UsageError
from loadgen.store.codec import builtins
from loadgen.store.folder import RunFolder
from loadgen.store.model import Manifest


def wanted_goal(objective: str | None, slos: list[str] | None) -> Goal | None:
    """The goal of the two options; None where neither is given. UsageError for an unknown objective or limit."""
    if objective is None and not slos:
        return None
    if objective is not None and objective not in OBJECTIVES:
        raise UsageError(f"--objective {objective} is unknown; the known ones are {', '.join(OBJECTIVES)}.")
    return Goal(objective or OBJECTIVES[0], units.slos(slos) if slos else ())


def with_goal(manifest: Manifest, goal: Goal | None) -> Manifest:
    """The manifest with that goal; as it is for None."""
    if goal is None:
        return manifest
    return replace(manifest, settings=manifest.settings | {SETTING: builtins(goal)})


def set_goal(folder: RunFolder, goal: Goal | None) -> None:
    """Stores the goal with the run, so that its reports follow what was verified; nothing for None."""
    if goal is not None:
        folder.write_manifest(with_goal(folder.manifest(), goal))


def judged(folder: RunFolder, manifest: Manifest | None = None) -> SloTable | None:
    """The verdicts on the limits of the goal, from the folder's single requests; None for a goal without limits."""
    goal = goal_of(manifest or folder.manifest())
    if not goal.slos:
        return None
    from loadgen.commands.request_points import read_points

    return slo_table(goal.slos, read_points(folder))
