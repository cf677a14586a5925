"""Which settings are out at which load, and where none is left, in words."""

from collections.abc import Sequence

from loadgen.analysis.capacity_model import SloFinding, Verdict
from loadgen.analysis.goal import SloLevel, about, finding_words, more_seconds, within_words
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
    """One line for each load at which a setting is out: `16: K = 4 misses it, tpot_p99 35 ms (33 ms to 38 ms)`; those
    with too few requests together.
    """
    if ladder.slo is None:
        return ()
    lines = []
    for level in [level.concurrency for level in ladder.schedule.levels]:
        out = [(name, one) for name, one in _settings(ladder, level) if one.verdict is not Verdict.MET]
        few = [(name, one) for name, one in out if _lacking(one)]
        rest = [(name, one) for name, one in out if not _lacking(one)]
        parts = [f"{name} {_why(one)}" for name, one in rest[:NAMED]]
        parts += [f"{len(rest) - NAMED} more"] if len(rest) > NAMED else []
        parts += [_too_few(few, ladder)] if few else []
        if parts:
            lines.append(f"{level}: {'; '.join(parts)}")
    return tuple(lines)


def _lacking(one: SloLevel) -> tuple[SloFinding, ...]:
    """The limits that are unresolved for lack of requests."""
    return tuple(
        finding
        for finding in one.findings
        if one.verdict is Verdict.UNRESOLVED
        and finding.verdict is Verdict.UNRESOLVED
        and finding.estimate.n < finding.estimate.needed
    )


def _too_few(few: Sequence[tuple[str, SloLevel]], ladder: LadderFinding) -> str:
    """`unresolved for no speculation, K = 2: 6 to 12 of the 368 requests that tpot_p99 needs (about 2 min of measuring
    each)`.
    """
    lacking = [finding for _, one in few for finding in _lacking(one)]
    hardest = max(lacking, key=lambda finding: finding.estimate.needed)
    counts = sorted(finding.estimate.n for finding in lacking if finding.slo == hardest.slo)
    have = f"{counts[0]} to {counts[-1]}" if counts[-1] > counts[0] else f"{counts[0]}"
    seconds = max(more_seconds(one) or 0.0 for _, one in few)
    # No speculation is no rung.
    everything = len(few) == len(ladder.arms) + 1
    names = "every setting" if everything else ", ".join(name for name, _ in few)
    return (
        f"unresolved for {names}: {have} of the {hardest.estimate.needed} requests that {hardest.slo.name} needs "
        f"(about {about(seconds)} more of measuring each)"
    )


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
    """Why the first load is unresolved: its settings with too few requests, or its first one whose interval holds the
    limit.
    """
    unsure = [(name, one) for name, one in _settings(ladder, level) if one.verdict is Verdict.UNRESOLVED]
    few = [(name, one) for name, one in unsure if _lacking(one)]
    if few:
        return f", at {level} {_too_few(few, ladder)}"
    return f", at {level} {unsure[0][0]} {_why(unsure[0][1])}" if unsure else ""


def _listed(levels: list[int] | tuple[int, ...]) -> str:
    return ", ".join(map(str, levels))
