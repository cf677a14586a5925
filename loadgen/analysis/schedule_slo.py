"""Which settings are out at which load, and where none is left, in words."""

from loadgen.analysis.capacity_model import Verdict
from loadgen.analysis.goal import SloLevel, finding_words, within_words
from loadgen.analysis.schedule_ladder import LadderFinding

NAMED = 4
"""So many settings are named with their figures."""


def unmet_words(ladder: LadderFinding) -> str:
    """Where no setting surely keeps the limits, and why: missed, or too few requests to tell. Empty without limits, and
    where each load has one that does.
    """
    unmet = ladder.schedule.unmet
    if ladder.slo is None or not unmet:
        return ""
    missed = [level for level in unmet if all(one.verdict is Verdict.MISSED for _, one in _settings(ladder, level))]
    unsure = [level for level in unmet if level not in missed]
    parts = [f"every one misses it at {_listed(missed)}"] if missed else []
    if unsure:
        parts.append(f"it is unresolved at {_listed(unsure)}{_example(ladder, unsure[0])}")
    where = "at any tested load" if len(unmet) == len(ladder.schedule.levels) else f"at {_listed(unmet)}"
    return (
        f"No setting surely keeps {within_words(ladder.slo.slos).removeprefix('within ')} {where} "
        f"({'; '.join(parts)}): there the choice is by {ladder.objective} alone."
    )


def out_words(ladder: LadderFinding) -> tuple[str, ...]:
    """One line for each load at which a setting is out: `16: K = 4 misses it, tpot_p99 35 ms (33 ms to 38 ms)`."""
    if ladder.slo is None:
        return ()
    lines = []
    for level in [level.concurrency for level in ladder.schedule.levels]:
        out = [(name, one) for name, one in _settings(ladder, level) if one.verdict is not Verdict.MET]
        named = [f"{name} {_why(one)}" for name, one in out[:NAMED]]
        more = f"; and {len(out) - NAMED} more" if len(out) > NAMED else ""
        if out:
            lines.append(f"{level}: {'; '.join(named)}{more}")
    return tuple(lines)


def _settings(ladder: LadderFinding, level: int) -> list[tuple[str, SloLevel]]:
    """(setting in words, its verdict) at one load: no speculation first."""
    if ladder.slo is None:
        return []
    found = [("no speculation", ladder.slo.at(ladder.condition, ladder.against, level))]
    for name, arm in sorted(ladder.arms.items(), key=lambda item: (item[1].constant_schedule, item[1].k)):
        words = f"K = {arm.k}{' as a schedule' if arm.constant_schedule else ''}"
        found.append((words, ladder.slo.at(ladder.condition, name, level)))
    return found


def _why(one: SloLevel) -> str:
    word = "misses it" if one.verdict is Verdict.MISSED else "is unresolved"
    deciding = [finding for finding in one.findings if finding.verdict is one.verdict]
    return f"{word}, {', '.join(map(finding_words, deciding))}" if deciding else f"{word}, no single requests"


def _example(ladder: LadderFinding, level: int) -> str:
    """Why the first load is unresolved, by its first setting that says so."""
    for name, one in _settings(ladder, level):
        if one.verdict is Verdict.UNRESOLVED:
            return f" (at {level} {name} {_why(one)})"
    return ""


def _listed(levels: list[int] | tuple[int, ...]) -> str:
    return ", ".join(map(str, levels))
