"""A verification in words."""

from collections.abc import Mapping, Sequence

from loadgen.analysis.capacity_model import Verdict as SloVerdict
from loadgen.analysis.goal import about, within_words
from loadgen.analysis.schedule import Choice, span
from loadgen.analysis.verify_limits import limits_verdict, own_checks
from loadgen.analysis.verify_model import Anew, Claim, Comparison, LimitCheck, Role, Verdict, Verification
from loadgen.analysis.verify_pooled import Pooled
from loadgen.analysis.verify_time import settles_briefly, what_settles
from loadgen.profiles.model import BatchSchedule


def claim_words(claim: Claim) -> str:
    """What is claimed, as a noun phrase."""
    if claim.choice is Choice.SCHEDULE:
        return f"the schedule {schedule_words(claim.schedule)}"
    if claim.choice is Choice.STATIC:
        return f"static K = {claim.static_k} at every tested load"
    if claim.choice is Choice.NONE:
        return "no speculation at any tested load"
    return pool_words(claim)


def advice_words(claim: Claim) -> str:
    """What to do, if this claim is the best one."""
    if claim.choice is Choice.SCHEDULE:
        return f"use the schedule {schedule_words(claim.schedule)}"
    if claim.choice is Choice.STATIC:
        return f"use static K = {claim.static_k}"
    if claim.choice is Choice.NONE:
        return "leave speculation out"
    return f"use {pool_words(claim)}"


def pool_words(claim: Claim) -> str:
    """`static K = 3 up to 64 requests in flight and a second pool without speculation from 65 on`."""
    parts = []
    for index, (first, last, k) in enumerate(claim.in_flight):
        unit = " requests in flight" if index == 0 else ""
        where = f"{span(first, last, claim.in_flight)}{unit}"
        name = f"static K = {claim.static_k} {where}" if k else f"a pool without speculation {where}"
        parts.append(name.replace("a pool", "a second pool") if index else name)
    return " and ".join(parts)


def schedule_words(schedule: BatchSchedule) -> str:
    """`[[1,8,4],[9,256,0]]`."""
    return "[" + ",".join(f"[{first},{last},{k}]" for first, last, k in schedule) + "]"


def role_words(claim: Claim, role: Role) -> str:
    """How a server is called beside another one."""
    return {
        Role.NONE: "no speculation",
        Role.STATIC: f"static K = {claim.static_k}",
        Role.SCHEDULE: "the schedule",
    }[role]


def sentence(
    claim: Claim,
    verdict: Verdict,
    margin: float,
    found: Sequence[Comparison],
    instead: str,
    made: Anew,
) -> str:
    """The verdict in one sentence: where, by how much, what to do instead; `made`: what measuring once more takes."""
    what = claim_words(claim)
    within = f"within {100 * margin:.1f} %"
    if verdict is Verdict.HOLDS:
        least = min(found, key=lambda one: one.ratio)
        places = list(dict.fromkeys(one.place for one in found))
        return (
            f"{what} holds: re-measured at {_loads(len(places))}, nowhere worse than any other server {within} (least "
            f"{least.ratio:.2f}x {role_words(claim, least.other)} at {least.place})"
        )
    if verdict is Verdict.FAILS:
        bad = [one for one in found if one.verdict is Verdict.FAILS]
        worst = min(bad, key=lambda one: one.ratio)
        lost = ", ".join(dict.fromkeys(one.place for one in bad))
        bounds = f" (90 % CI {worst.ci90[0]:.2f} to {worst.ci90[1]:.2f})" if worst.ci90 else ""
        told = (
            f"{what} does not hold: worse at {lost}, at worst {worst.ratio:.2f}x "
            f"{role_words(claim, worst.other)}{bounds} at {worst.place}"
        )
        return f"{told}; {instead}" if instead else told
    if not found:
        return f"{what} could not be tested: no load has a valid cell of each server{_once_more(made)}"
    open_at = [one for one in found if one.verdict is Verdict.OPEN]
    unsure = ", ".join(dict.fromkeys(one.place for one in open_at)) or "any load"
    return f"{what} is not resolved at {unsure} {within}{what_settles(open_at, made)}"


def with_limits(told: str, claim: Claim, faster: Verdict, checks: Sequence[LimitCheck], instead: str) -> str:
    """The sentence with what became of the limits: kept, missed (where, by how much), or unresolved (how long)."""
    verdict = limits_verdict(claim, checks)
    if not checks or not claim.slos:
        return told
    if verdict is Verdict.HOLDS:
        return f"{told}{_kept(claim, checks)}"
    words = _limit_words(claim, checks)
    if verdict is Verdict.FAILS:
        tail = f"; {instead}" if instead and faster is not Verdict.FAILS else ""
        return f"{told}; {words}" if faster is Verdict.FAILS else f"{claim_words(claim)} does not hold: {words}{tail}"
    return f"{told}; {words}" if faster is not Verdict.HOLDS else f"{claim_words(claim)} is not resolved: {words}"


def _loads(count: int) -> str:
    return f"{count} load{'s' if count > 1 else ''}"


def _kept(claim: Claim, checks: Sequence[LimitCheck]) -> str:
    return f", and keeps {_limits(claim)}" if own_checks(claim, checks) else ""


def _limits(claim: Claim) -> str:
    return within_words(claim.slos).removeprefix("within ")


def _limit_words(claim: Claim, checks: Sequence[LimitCheck]) -> str:
    """Where the claimed server missed the limits; else where that is unresolved, and how long it would take."""
    own = own_checks(claim, checks)
    missed = [one for one in own if one.verdict is SloVerdict.MISSED]
    if missed:
        return f"it misses {_limits(claim)} at " + ", ".join(f"{one.concurrency} ({one.words})" for one in missed)
    unsure = [one for one in own if one.verdict is SloVerdict.UNRESOLVED]
    places = ", ".join(str(one.concurrency) for one in unsure)
    seconds = limits_seconds(claim, checks)
    time = f"; about {about(seconds)} of measuring would tell" if seconds else ""
    return f"{_limits(claim)} is unresolved at {places} ({unsure[0].words} at {unsure[0].concurrency}{time})"


def limits_seconds(claim: Claim, checks: Sequence[LimitCheck]) -> float | None:
    """Seconds of measuring the claimed servers until the limits are told everywhere; None if nothing is unresolved."""
    unsure = [one for one in own_checks(claim, checks) if one.verdict is SloVerdict.UNRESOLVED]
    return sum(one.more_s or 0.0 for one in unsure) if unsure else None


def _once_more(made: Anew) -> str:
    return f"; the same again takes {about(made.sessions * made.repeat_s)} of measuring" if made.repeat_s > 0 else ""


def final_words(found: Verification, again: Mapping[int, Pooled] | None = None, when: str = "") -> str:
    """What to do after all, with the verdict: the end of the one-sentence answer. `again`: what run and verification
    say together; where that is against the advice beyond noise, the advice is not given without it. `when`: the loads
    at which it pays.
    """
    against = _against(found.claim, again or {})
    advice = f"{advice_words(found.claim)} {when}".rstrip()
    places = len(dict.fromkeys(one.place for one in found.comparisons))
    if found.verdict is Verdict.HOLDS:
        within = f"holds at {_loads(places)} within {100 * found.margin:.1f} %"
        within += f", which covers {against}" if against else ""
        return f"{advice} (re-measured: {within}{_kept(found.claim, found.limits)})"
    if found.verdict is Verdict.FAILS:
        return found.sentence.removesuffix(".")
    unsure_limits = limits_verdict(found.claim, found.limits) is Verdict.OPEN
    if not found.comparisons and not unsure_limits:
        return f"{advice} (re-measured, but no cell was valid{_once_more(found.anew)})"
    unsure = [one for one in found.comparisons if one.verdict is Verdict.OPEN]
    time = settles_briefly(unsure, found.anew)
    limits = f"; {_limit_words(found.claim, found.limits)}" if unsure_limits else ""
    if against:
        told = (
            f"{claim_words(found.claim)}, the run's advice, is not resolved ({against} when re-measured{time}{limits})"
        )
        return f"{told}; use it only {when}" if when else told
    return f"{advice} (re-measured: not resolved{time}{limits})"


def _against(claim: Claim, again: Mapping[int, Pooled]) -> str:
    """`a cost at 14, 16 (0.93x at 16)`, or the gain that is given up; empty where nothing is against the advice."""
    costs = [one for level, one in again.items() if one.sign < 0 and claim.role_at(level) is Role.STATIC]
    gains = [one for level, one in again.items() if one.sign > 0 and claim.role_at(level) is Role.NONE]
    parts = []
    for word, found in (("a cost", costs), ("a gain of speculation", gains)):
        if found:
            most = max(found, key=lambda one: abs(one.log_speedup))
            places = ", ".join(str(one.concurrency) for one in found)
            parts.append(f"{word} at {places} ({most.words})" if len(found) > 1 else f"{word}, {most.words}")
    return " and ".join(parts)
