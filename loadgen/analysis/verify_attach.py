"""A verification beside the findings that it tested."""

from dataclasses import replace

from loadgen.analysis.model import Findings
from loadgen.analysis.verify_model import Verdict, Verification
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
    return replace(
        findings,
        recommendation=replace(advice, verified=VERIFIED[verification.verdict], why=why),
        answer=f"{findings.answer.removesuffix('.')}; {final_words(verification)}.",
        verification=verification,
    )
