"""SIMULATED stands once in each place that has a banner for it."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from loadgen.analysis.model import Findings
from loadgen.report.markdown import render_markdown
from loadgen.report.terminal import print_findings
from loadgen.report.words import headline, unmarked
from loadgen.store.model import Manifest


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("SIMULATED: ngram pays off.", "ngram pays off."),
        ("SIMULATED, indicative: ngram pays off.", "indicative: ngram pays off."),
        ("ngram pays off.", "ngram pays off."),
    ],
)
def test_the_banner_says_it_instead(findings: Findings, answer: str, shown: str) -> None:
    assert headline(replace(findings, simulated=True, answer=answer)) == shown


def test_a_measured_run_keeps_its_words(findings: Findings) -> None:
    measured = replace(findings, simulated=False, answer="SIMULATED: a profile's odd name pays off.")
    assert headline(measured) == measured.answer


def test_it_stands_once(findings: Findings, manifest: Manifest) -> None:
    simulated = replace(findings, simulated=True, answer="SIMULATED: ngram pays off.")
    out = StringIO()
    print_findings(Console(file=out, width=100), simulated, manifest)
    for text in (out.getvalue(), render_markdown(simulated, manifest)):
        assert text.count("SIMULATED") == 1
        assert "ngram pays off." in text


def test_a_simulated_answer_loses_only_its_mark() -> None:
    assert unmarked("SIMULATED: chat: 4 GPUs\x1b[2J.") == "chat: 4 GPUs[2J."
    assert unmarked("It is SIMULATED: so.") == "It is SIMULATED: so."
