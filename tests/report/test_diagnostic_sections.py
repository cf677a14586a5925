"""The diagnosis in every report: one table, its notes, and nothing without a diagnosis."""

from dataclasses import replace

import jsonschema
import pytest

from loadgen.analysis.diagnostic import DiagnosticFinding, Spread
from loadgen.analysis.model import Findings
from loadgen.load.summary import distribution
from loadgen.report.diagnostic_sections import diagnostic_sections
from loadgen.report.html import render_html
from loadgen.report.markdown import render_markdown
from loadgen.report.summary import json_schema, summary
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
    assert (row["chunks"], row["tokens/chunk"]) == ("4", "2.00")
    assert (row["1"], row["2"], row["over 4"]) == ("75 %", "0 %", "25 %")
    assert (row["TPOT, ms"], row["without"]) == ("21.0", "20.0 (19.5 to 20.5)")
    assert row["tokens/s, with / without"] == "0.96× of 3 cells"
    assert any("acceptance 50 %" in note and "n = 2" in note for note in section.notes)


def test_what_lies_within_the_scatter_is_said_to(diagnosed: Findings) -> None:
    among = replace(NGRAM, tokens_per_s=995.0)
    (section,) = diagnostic_sections(replace(diagnosed, diagnostics=(among,)))
    assert section.rows[0][-1].endswith("of 3 cells, within their scatter")


def test_what_the_server_did_not_tell_is_missing_not_zero(diagnosed: Findings) -> None:
    (section,) = diagnostic_sections(diagnosed)
    assert set(section.rows[0][4:]) == {MISSING}
    assert any("no tokens per chunk for 7 requests" in note for note in section.notes)


def test_every_report_has_it_and_the_schema_knows_it(diagnosed: Findings, manifest: Manifest) -> None:
    jsonschema.validate(summary(diagnosed, manifest), json_schema())
    for text in (render_markdown(diagnosed, manifest), render_html(diagnosed, manifest)):
        assert "Tokens per chunk" in text


def test_without_a_diagnosis_there_is_no_section(findings: Findings, manifest: Manifest) -> None:
    assert diagnostic_sections(findings) == ()
    assert "Tokens per chunk" not in render_markdown(findings, manifest)
    assert summary(findings, manifest)["diagnostics"] == []
