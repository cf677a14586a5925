"""A verification beside the findings that it tested."""

from dataclasses import replace

from loadgen.analysis.model import Findings
from loadgen.analysis.schedule import Choice, rungs
from loadgen.analysis.schedule_answer import ladder_answer, load_range
from loadgen.analysis.verify_model import Verdict, Verification
from loadgen.analysis.verify_pooled import Pooled, pooled, refuted
from loadgen.analysis.verify_words import final_words

VERIFIED = {Verdict.HOLDS: True, Verdict.FAILS: False, Verdict.OPEN: None}


def with_verification(findings: Findings, verification: Verification) -> Findings:
    """The findings with the verdict in the recommendation, the answer and a part of its own; one note more if the
    recommendation has changed since it was tested.
    """
    advice, claim = findings.recommendation, verification.claim
    if advice is None or (advice.setting, advice.value) != (claim.setting, claim.value):
        note = (
            "the verification in verify/ tested another recommendation than this one: run loadgen verify again; "
            f"it said: {verification.sentence}"
        )
        return replace(findings, notes=(*findings.notes, note))
    # What was refuted must not be read without what refuted it.
    why = f"{verification.sentence} {advice.why}" if verification.verdict is Verdict.FAILS else advice.why
    again = measured_again(findings, verification)
    when, beyond = _range(findings, verification, again)
    told = replace(advice, verified=VERIFIED[verification.verdict], why=why, candidate=False, when=when, beyond=beyond)
    return replace(
        findings,
        recommendation=told,
        answer=f"{_answer(findings, verification, again).removesuffix('.')}; {final_words(verification, again, when)}.",
        verification=verification,
    )


def _range(findings: Findings, verification: Verification, again: dict[int, Pooled]) -> tuple[str, str]:
    """Where a static K pays, by the ranges of the answer's words, held to what was measured again."""
    if verification.claim.choice is not Choice.STATIC:
        return "", ""
    own = (one for one in findings.ladders if (one.of, one.condition) == _of(verification))
    return next((load_range(one, again) for one in own), ("", ""))


def measured_again(findings: Findings, verification: Verification) -> dict[int, Pooled]:
    """Load → what the run and its verification say together of the static K there (docs/method.md, part 9)."""
    claim = verification.claim
    names = {name for name, arm in _arms(findings) if arm == (claim.profile, claim.static_k)} or {claim.profile}
    run = [
        rung
        for condition in findings.conditions
        if condition.condition == claim.condition
        for profile in condition.profiles
        if profile.profile in names
        for rung in rungs(profile.levels, claim.objective)
    ]
    return pooled(verification.static_gains, run)


def _arms(findings: Findings) -> list[tuple[str, tuple[str, int]]]:
    return [
        (name, (arm.of, arm.k))
        for ladder in findings.ladders
        for name, arm in ladder.arms.items()
        if not arm.constant_schedule
    ]


def _answer(findings: Findings, verification: Verification, again: dict[int, Pooled]) -> str:
    """The run's sentence, held to what was measured again."""
    claim = verification.claim
    if findings.ladders:
        places = {i: again for i, one in enumerate(findings.ladders) if (one.of, one.condition) == _of(verification)}
        return ladder_answer(
            findings.ladders,
            simulated=findings.simulated,
            interrupted=findings.interrupted,
            indicative=any(
                b.indicative for c in findings.conditions for p in c.profiles for b in p.break_even.values()
            ),
            again=places,
        )
    against = [
        one
        for condition in findings.conditions
        if condition.condition == claim.condition
        for profile in condition.profiles
        if profile.profile == claim.profile
        for one in refuted(profile.break_even["output_tokens_per_s"], again)
    ]
    told = findings.answer.removesuffix(".")
    return f"{told}, but measured again: {', '.join(one.words for one in against)}" if against else told


def _of(verification: Verification) -> tuple[str, object]:
    return verification.claim.profile, verification.claim.condition
