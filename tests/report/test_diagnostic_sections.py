"""The diagnosis in every report: one table, its notes, and nothing without a diagnosis."""

from dataclasses import replace
from io import StringIO

import jsonschema
import pytest
from rich.console import Console

from loadgen.analysis.diagnostic import DiagnosticFinding, Spread
from loadgen.analysis.model import Findings
from loadgen.load.summary import distribution
from loadgen.report.diagnostic_sections import diagnostic_sections
from loadgen.report.html import render_html
from loadgen.report.markdown import render_markdown
from loadgen.report.summary import json_schema, summary
from loadgen.report.terminal import print_findings
from loadgen.report.words import MISSING
from loadgen.store.model import Condition, Manifest

NGRAM = DiagnosticFinding(
    profile="ngram",
    condition=Condition("code-edit", 300, 0.0),
    concurrency=8,
    requests=40,
    uncounted=0,
    tokens_per_chunk=distribution([1, 1, 1, 5]),
    chunk_shares=((1, 0.75), (5, 0.25)),
    tokens_per_s=960.0,
    tokens_per_s_without=Spread(1000.0, 990.0, 1010.0, 3),
    tpot_s=0.021,
    tpot_s_without=Spread(0.02, 0.0195, 0.0205, 3),
    acceptance_rate=distribution([0.4, 0.6]),
    acceptance_length=distribution([2.6, 3.4]),
)
NOTHING = replace(
    NGRAM,
    profile="baseline",
    uncounted=7,
    tokens_per_chunk=distribution([]),
    chunk_shares=(),
    tokens_per_s_without=None,
    tpot_s=None,
    tpot_s_without=None,
    acceptance_rate=distribution([]),
    acceptance_length=distribution([]),
)


@pytest.fixture
def diagnosed(findings: Findings) -> Findings:
    return replace(findings, diagnostics=(NOTHING, NGRAM))


def test_a_row_says_chunks_times_and_cost(diagnosed: Findings) -> None:
    (section,) = diagnostic_sections(diagnosed)
    row = dict(zip(section.header, section.rows[1], strict=True))
    assert (row["chunks"], row["mean"]) == ("4", "2.00")
    assert (row["1"], row["2"], row["5+"]) == ("75 %", "0 %", "25 %")
    assert (row["TPOT, ms"], row["without"], row["tok/s"]) == ("21.0", "20.0", "0.96×")
    cost = "ngram: 0.96× of the tokens/s of 3 verdict cells, which lie at 0.99× to 1.01× of their mean."
    assert cost in section.notes
    assert any("acceptance 50 %" in note and "n = 2" in note for note in section.notes)


def test_what_lies_within_the_scatter_is_said_to(diagnosed: Findings) -> None:
    among = replace(NGRAM, tokens_per_s=995.0)
    (section,) = diagnostic_sections(replace(diagnosed, diagnostics=(among,)))
    assert any(note.endswith(": no more than their scatter.") for note in section.notes)


def test_what_the_server_did_not_tell_is_missing_not_zero(diagnosed: Findings) -> None:
    (section,) = diagnostic_sections(diagnosed)
    assert set(section.rows[0][2:]) == {MISSING}
    assert any("no tokens per chunk for 7 requests" in note for note in section.notes)


def test_each_condition_has_a_section(diagnosed: Findings) -> None:
    chat = replace(NGRAM, condition=Condition("chat", 60, 0.0))
    code, other = diagnostic_sections(replace(diagnosed, diagnostics=(NGRAM, chat)))
    assert (code.anchor, other.anchor) == ("diagnosis-1", "diagnosis-2")
    assert other.title == "Tokens per chunk: chat, 60 input tokens, temperature 0, 8 in flight"


def test_the_table_fits_a_terminal_of_80_columns(diagnosed: Findings, manifest: Manifest) -> None:
    out = StringIO()
    print_findings(Console(file=out, width=80), diagnosed, manifest)
    (line,) = [line for line in out.getvalue().splitlines() if "75 %" in line]
    assert line.split()[0] == "ngram"
    assert line.split()[-1] == "0.96×"


def test_every_report_has_it_and_the_schema_knows_it(diagnosed: Findings, manifest: Manifest) -> None:
    jsonschema.validate(summary(diagnosed, manifest), json_schema())
    for text in (render_markdown(diagnosed, manifest), render_html(diagnosed, manifest)):
        assert "Tokens per chunk" in text


def test_without_a_diagnosis_there_is_no_section(findings: Findings, manifest: Manifest) -> None:
    assert diagnostic_sections(findings) == ()
    assert "Tokens per chunk" not in render_markdown(findings, manifest)
    assert summary(findings, manifest)["diagnostics"] == []
