"""The one-sentence answer."""

import math
from collections.abc import Collection, Sequence

from loadgen.analysis.breakeven import describe, interval, spans
from loadgen.analysis.model import BreakEven, BreakEvenStatus, ConditionFinding, LevelFinding, ProfileFinding
from loadgen.store.model import CellKey, Condition


def answer(
    conditions: Sequence[ConditionFinding], *, simulated: bool, interrupted: bool, failed: Collection[CellKey] = ()
) -> str:
    """`SIMULATED: ngram pays off up to 12 concurrent requests on code-edit (bracket 8 to 15) and never on chat.`

    By output tokens/s. Profiles for attribution are left out where there are others.
    `failed`: cells that were tried and not measured. Levels without one valid pair are named: the loads that an answer
    speaks of are those that were measured.
    Says `indicative` where an interval is no 95 % one, and `interrupted` where cells are missing.
    """
    everyone = {one.profile: candidate(one) for condition in conditions for one in condition.profiles}
    profiles = sorted(name for name, real in everyone.items() if real or not any(everyone.values()))
    clauses = [_clause(profile, conditions, failed) for profile in profiles]
    if not clauses:
        return "Nothing can be said: no profile was measured beside the baseline."
    verdicts = [
        one.break_even["output_tokens_per_s"]
        for condition in conditions
        for one in condition.profiles
        if one.profile in profiles
    ]
    marks = [
        "SIMULATED" if simulated else "",
        "interrupted" if interrupted else "",
        "indicative" if any(verdict.indicative for verdict in verdicts) else "",
    ]
    prefix = ", ".join(mark for mark in marks if mark)
    return (f"{prefix}: " if prefix else "") + "; ".join(clauses) + "."


def label(condition: Condition, among: Sequence[Condition]) -> str:
    """The workload's name, with length and temperature only where they tell conditions apart."""
    same = [other for other in among if other.workload == condition.workload]
    parts = [condition.workload]
    if len({other.input_tokens for other in same}) > 1:
        parts.append(f"{condition.input_tokens} tokens")
    if len({other.temperature for other in same}) > 1:
        parts.append(f"temperature {condition.temperature:g}")
    return " at ".join(parts) if len(parts) < 3 else f"{parts[0]} at {parts[1]}, {parts[2]}"


def _clause(profile: str, conditions: Sequence[ConditionFinding], failed: Collection[CellKey]) -> str:
    everything = [condition.condition for condition in conditions]
    parts = [
        _part(one, label(condition.condition, everything)) + _without_cell(one, condition.condition, failed)
        for condition in conditions
        for one in condition.profiles
        if one.profile == profile
    ]
    # "but" opens a clause of its own, which "and" without a comma would run into.
    listed = len(parts) > 2 or any(", but " in part for part in parts[:-1])
    text = ", ".join(parts[:-1]) + f", and {parts[-1]}" if listed else " and ".join(parts)
    faulty = any(server_fault(one) for at in conditions for one in at.profiles if one.profile == profile)
    fault = " (its server accepted no draft at all, which is a fault: see zero-acceptance)" if faulty else ""
    return f"{profile} {text}{fault}"


def candidate(finding: ProfileFinding) -> bool:
    """False for profiles that explain and are never advised: without a method (`baseline-sync`), or the cost probe."""
    return finding.method != "none" and not finding.profile.startswith("cost-probe")


def server_fault(finding: ProfileFinding) -> bool:
    """True if the server never accepted a draft where it made a hundred or more: its speed-up says nothing."""
    return any(check.name == "zero-acceptance" for level in finding.levels for check in level.checks)


def _part(finding: ProfileFinding, where: str) -> str:
    verdict = finding.break_even["output_tokens_per_s"]
    if verdict.status is BreakEvenStatus.FOUND:
        return _found(verdict, where)
    if verdict.status is BreakEvenStatus.PAYS_THROUGHOUT:
        return _gaining(finding, verdict, where)
    if verdict.status is BreakEvenStatus.NEVER_PAYS:
        low, high = verdict.tested_levels[0], verdict.tested_levels[-1]
        if verdict.indicative:
            return f"shows no gain on {where} ({low} to {high} concurrent requests)"
        return f"never pays off on {where} ({low} to {high} concurrent requests)"
    return _unsettled(finding, verdict, where)


def _gaining(finding: ProfileFinding, verdict: BreakEven, where: str) -> str:
    """A gain at the highest level; the lower ones that are not told from 1.0 are named."""
    tested, gains = verdict.tested_levels, verdict.sure_gains
    top = _level(finding.levels, tested[-1])
    ratio = f"{top.speedup.value:.2f}x" if top and top.speedup else ""
    if len(tested) == 1:
        return f"gains on {where} at {_levels(tested)}, the only level measured{f' ({ratio})' if ratio else ''}"
    if untold := [level for level in tested if level not in gains]:
        told = f"gains on {where} at {spans(gains, tested)} concurrent requests{f' ({ratio} there)' if ratio else ''}"
        return f"{told}, but {spans(untold, tested)} {'is' if len(untold) == 1 else 'are'} not told from 1.0"
    still = f", still {ratio} there" if ratio else ""
    return f"pays off on {where} at every load up to {tested[-1]} concurrent requests{still}"


def _without_cell(finding: ProfileFinding, condition: Condition, failed: Collection[CellKey]) -> str:
    """` (16 was tried and has no valid cell)`; empty if every level has one. A level lost to either server is lost."""
    tried = {key.level for key in failed if key.condition == condition}
    valid = {level.concurrency for level in finding.levels if level.valid}
    lost = sorted({*tried, *(level.concurrency for level in finding.levels)} - valid)
    if not lost or not valid:
        return ""
    words = "were tried and have" if len(lost) > 1 else "was tried and has"
    return f" ({', '.join(map(str, lost))} {words} no valid cell)"


def _unsettled(finding: ProfileFinding, verdict: BreakEven, where: str) -> str:
    gains, losses = verdict.sure_gains, verdict.sure_losses
    if gains and gains[-1] == verdict.tested_levels[-1]:
        slower = [
            level.concurrency
            for level in finding.levels
            if level.concurrency < gains[0] and level.speedup and level.speedup.value < 1
        ]
        return f"gains on {where} at {_levels(gains)}, but whether it costs at {_listed(slower)} is not settled"
    if gains:
        return f"gains on {where} at {_levels(gains)}, but where it turns is not settled"
    if losses:
        return f"costs on {where} at {_levels(losses)}, but whether it ever pays off is not settled"
    return f"is not settled on {where}"


def _listed(levels: Sequence[int]) -> str:
    return ", ".join(map(str, levels))


def _levels(levels: Sequence[int]) -> str:
    return f"{_listed(levels)} concurrent request{'s' if levels[-1] > 1 else ''}"


def _found(verdict: BreakEven, where: str) -> str:
    first = verdict.crossings[0]
    if len(verdict.crossings) > 1:
        return f"turns {len(verdict.crossings)} times on {where} ({', then '.join(map(describe, verdict.crossings))})"
    bracket = f"({interval(first)})"
    if first.direction == "up":
        return f"pays off on {where} only above {first.concurrency:g} concurrent requests {bracket}"
    return f"pays off up to {first.concurrency:g} concurrent requests on {where} {bracket}"


def _level(levels: Sequence[LevelFinding], concurrency: int) -> LevelFinding | None:
    return next((level for level in levels if level.concurrency == concurrency), None)


def best_gain(finding: ProfileFinding) -> float:
    """The largest ln speed-up over the valid levels; −inf without any."""
    return max((math.log(level.speedup.value) for level in finding.levels if level.speedup), default=-math.inf)
