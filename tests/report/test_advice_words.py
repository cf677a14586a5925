"""What stands before a setting: `Set` only where it is settled and was measured as what it is."""

from dataclasses import replace
from pathlib import Path

import pytest

from loadgen.analysis.model import Findings, Recommendation
from loadgen.commands.conclude import find_findings
from loadgen.report.words import advice_words, foretold
from loadgen.store.folder import RunFolder

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "h200" / "dense8b"
SCHEDULE = Recommendation("num_speculative_tokens_per_batch_size", [[1, 11, 4], [12, 256, 0]], "here", None, "because")


@pytest.fixture(scope="module")
def found() -> Findings:
    return find_findings(RunFolder(EXAMPLE))


def test_set_only_what_is_settled(found: Findings) -> None:
    assert advice_words(found) == ("Set", "num_speculative_tokens: 3", "if fewer than 16 requests run at once")
    assert advice_words(replace(found, interrupted=True))[0] == "Not settled (interrupted):"
    assert advice_words(replace(found, recommendation=None)) == ("", "", "")


def test_an_unmeasured_schedule_is_not_to_be_set(found: Findings) -> None:
    made = replace(found, recommendation=replace(SCHEDULE, candidate=True))
    told = "num_speculative_tokens_per_batch_size: [[1,11,4],[12,256,0]]"
    assert advice_words(made) == ("Candidate, not measured as a schedule:", told, "")
    failed = replace(found, recommendation=replace(SCHEDULE, verified=False))
    assert advice_words(failed)[0] == "Does not hold, measured again:"


def test_no_speculation_is_an_option_left_out(found: Findings) -> None:
    off = replace(found, recommendation=Recommendation("speculative-config", None, "here", None, "because"))
    assert advice_words(off) == ("", "Leave --speculative-config out", "")


def test_a_turn_that_was_not_found_is_foretold_where_the_cost_was_fitted(found: Findings) -> None:
    note = (
        "ngram on code-edit: fitted step cost (6 step times, 1.2% off): decoding is memory-bound up to 4; by it "
        "speculation pays up to 11 (95 %: 5 to beyond 16), measured: inconclusive"
    )
    told = "Foretold by the fitted step cost, not measured: ngram on code-edit pays up to 11 (95 %: 5 to beyond 16)."
    assert foretold(replace(found, notes=(note, "another note"))) == [told]
    assert foretold(replace(found, notes=(note.replace("measured: inconclusive", "measured 12"),))) == []
