"""A comparison in a terminal says in which direction a ratio is good."""

import io

import pytest
from rich.console import Console

from loadgen.analysis.compare import Change, Comparison
from loadgen.analysis.model import Estimate
from loadgen.report.compare_text import comparison_data, print_comparison, verdict_words
from loadgen.store.model import Condition

CHAT = Condition("chat", 60, 0.0)


def change(measure: str, value: float, better: bool | None) -> Change:
    return Change(
        CHAT, "ngram-schedule-k0", 4, measure, Estimate(value, 3, (value - 0.1, value + 0.1)), better, 0.01, (3, 3)
    )


LOSSES = (change("output_tokens_per_s", 0.68, False), change("tpot", 1.46, False), change("ttft", 1.05, None))
FOUND = Comparison("one", "two", (), (), LOSSES, (), LOSSES[:1], "Slower.")


def test_a_longer_time_is_called_worse() -> None:
    out = io.StringIO()
    print_comparison(Console(file=out, width=80), FOUND)
    text = out.getvalue()
    for words in (
        "0.68× as many",
        "1.46× as long",
        "1.05× as long",
        "(1.36–1.56)",
        "within noise",
        "ngram-schedule-k0",
    ):
        assert words in text
    assert text.count("worse") == 3
    assert "longer TPOT and TTFT are worse" in " ".join(text.split())


def test_json_says_what_the_ratio_is_and_which_way_is_good() -> None:
    data = comparison_data(FOUND)["changes"]
    assert {one["ratio_is"] for one in data} == {"after / before"}
    assert [one["more_is_better"] for one in data] == [True, False, False]


@pytest.mark.parametrize(("better", "word"), [(True, "better"), (False, "worse"), (None, "within noise")])
def test_a_verdict_has_a_word(better: bool | None, word: str) -> None:
    assert verdict_words(change("tpot", 1.0, better)) == word
