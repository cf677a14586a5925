"""A verification under limits: did each server keep them when it was measured again, and what follows for the claim?"""

from collections.abc import Sequence
from dataclasses import replace

from loadgen.analysis.capacity_model import Verdict as SloVerdict
from loadgen.analysis.goal import SloTable, finding_words, more_seconds
from loadgen.analysis.verify_model import Claim, Comparison, LimitCheck, Verdict

NO_REQUESTS = "no single requests"


def limit_checks(claim: Claim, levels: Sequence[int], slo: SloTable | None) -> tuple[LimitCheck, ...]:
    """Every server at every load that was measured again."""
    if slo is None:
        return ()
    found = []
    for level in levels:
        for role, name in claim.arms.items():
            one = slo.at(claim.condition, name, level)
            deciding = [finding for finding in one.findings if finding.verdict is one.verdict]
            words = ", ".join(map(finding_words, deciding)) or NO_REQUESTS
            found.append(LimitCheck(level, role, one.verdict, words, more_seconds(one)))
    return tuple(found)


def within_limits(
    comparisons: Sequence[Comparison], claim: Claim, checks: Sequence[LimitCheck]
) -> tuple[Comparison, ...]:
    """The comparisons with settings that count: where the claim includes the limits, a server that missed them is no
    rival, and one of which that is not known does not refute the claim. Open loops are compared as they are.
    """
    known = {(check.role, str(check.concurrency)): check.verdict for check in checks}
    found = []
    for one in comparisons:
        verdict = known.get((one.other, one.place)) if claim.within(one.concurrency) else None
        if verdict is SloVerdict.MISSED:
            continue
        unsure = verdict is SloVerdict.UNRESOLVED and one.verdict is Verdict.FAILS
        found.append(replace(one, verdict=Verdict.OPEN, standing="open") if unsure else one)
    return tuple(found)


def own_checks(claim: Claim, checks: Sequence[LimitCheck]) -> tuple[LimitCheck, ...]:
    """Those of the claimed server, where the claim includes the limits."""
    return tuple(one for one in checks if claim.within(one.concurrency) and one.role is claim.role_at(one.concurrency))


def limits_verdict(claim: Claim, checks: Sequence[LimitCheck]) -> Verdict:
    """holds: the claimed server surely kept them wherever that is claimed; does not hold: it surely missed one."""
    verdicts = {one.verdict for one in own_checks(claim, checks)}
    if SloVerdict.MISSED in verdicts:
        return Verdict.FAILS
    return Verdict.OPEN if SloVerdict.UNRESOLVED in verdicts else Verdict.HOLDS


def worst(one: Verdict, other: Verdict) -> Verdict:
    """What two necessary parts of a claim say together."""
    for verdict in (Verdict.FAILS, Verdict.OPEN):
        if verdict in (one, other):
            return verdict
    return Verdict.HOLDS


def keeps(claim: Claim, checks: Sequence[LimitCheck]) -> bool:
    """True if nothing is known against the claim's servers keeping the limits where that was claimed."""
    return limits_verdict(claim, checks) is not Verdict.FAILS
