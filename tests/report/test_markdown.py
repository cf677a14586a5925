"""report.md: the answer first, everything from outside escaped."""

import re
from dataclasses import replace

import pytest

from loadgen.analysis.model import Findings
from loadgen.report.markdown import code, escape, render_markdown
from loadgen.store.model import CellResult, Manifest, ServerFacts


def test_the_answer_comes_first(
    findings: Findings, manifest: Manifest, cells: tuple[CellResult, ...], servers: tuple[ServerFacts, ...]
) -> None:
    text = render_markdown(findings, manifest, cells, servers)
    assert text.startswith("# On code-edit ngram pays off up to 13 concurrent requests")
    for part in (
        "**SIMULATED**",
        "`num_speculative_tokens_per_batch_size: [[1,8,4],[9,13,2],[14,256,0]]`",
        "### ngram (K = 4) against baseline",
        "client-bound",
        "`.venv/bin/loadgen sweep --profile ngram --workload code-edit,chat`",
        "the same for all profiles",
        "async\\_scheduling",
    ):
        assert part in text


def tables(text: str) -> list[list[str]]:
    blocks = re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE)
    return [block.strip().splitlines() for block in blocks]


def test_every_table_row_has_as_many_cells_as_its_header(
    findings: Findings, hostile_findings: Findings, manifest: Manifest
) -> None:
    for found in (findings, hostile_findings):
        for rows in tables(render_markdown(found, manifest)):
            counts = {len(re.findall(r"(?<!\\)\|", row)) for row in rows}
            assert len(counts) == 1, rows


def test_c102_nothing_from_outside_is_markup(hostile_findings: Findings, manifest: Manifest) -> None:
    text = render_markdown(hostile_findings, manifest)
    outside_code = re.sub(r"(`+).*?(?<!`)\1(?!`)", "", text.replace("\\`", ""))
    assert "<img" not in outside_code
    assert "</script" not in outside_code
    assert "\x1b" not in text
    assert "\u2028" not in text


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("a|b", r"a\|b"),
        ("`x`", r"\`x\`"),
        ("<b>", "&lt;b&gt;"),
        ("[l](u)", r"\[l\](u)"),
        ("a\nb", "a b"),
        ("a\\|b", "a\\\\\\|b"),
        ("http://x", "http\\://x"),
    ],
)
def test_c102_marks_are_escaped(text: str, right: str) -> None:
    assert escape(text) == right


def test_code_spans_hold_back_ticks() -> None:
    assert code("a `b` ``c``") == "``` a `b` ``c`` ```"
    assert code("plain") == "`plain`"


def test_degenerate_findings(degenerate: dict[str, Findings], manifest: Manifest) -> None:
    for found in degenerate.values():
        text = render_markdown(found, manifest)
        assert text.startswith("# ")
        assert not re.search(r"\b(nan|None|inf)\b", text)


def test_no_checks_says_so(findings: Findings, manifest: Manifest) -> None:
    text = render_markdown(replace(findings, conditions=(), checks=()), manifest)
    assert "No check spoke" in text


def test_our_commands_in_advice_are_code_and_other_back_ticks_stay_text(findings: Findings, manifest: Manifest) -> None:
    assert findings.recommendation is not None
    advice = replace(findings.recommendation, why="Run `loadgen verify` for `rm -rf`.")
    text = render_markdown(replace(findings, recommendation=advice), manifest)
    assert "Run `loadgen verify` for \\`rm -rf\\`." in text
