"""The terminal's answer: complete, readable at 80 columns and without colour."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from loadgen.analysis.model import BreakEvenStatus, Findings
from loadgen.report.terminal import print_findings
from loadgen.store.model import Manifest

REPORT = Path("runs/2026-11-29T16-20-00Z-ngram/report.html")


def printed(findings: Findings, manifest: Manifest, width: int = 80, colour: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colour, no_color=not colour)
    print_findings(console, findings, manifest, REPORT)
    return out.getvalue()


def test_everything_stands_at_80_columns(findings: Findings, manifest: Manifest) -> None:
    text = printed(findings, manifest)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "…" not in text
    flat = " ".join(text.replace("│", " ").split())
    for part in (
        "code-edit, 512 input tokens, temperature 0",
        "ngram (K = 4) against baseline",
        "1.42× 1.39–1.45",
        "SIMULATED",
        findings.answer,
        "num_speculative_tokens_per_batch_size: [[1,8,4],[9,13,2],[14,256,0]]",
        "void client-bound (ngram, level 32)",
        "Give loadgen a free core or lower the level.",
        "reset-counters (run)",
        str(REPORT),
    ):
        assert part in flat
    assert "\x1b" not in text


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
def test_columns_are_dropped_and_never_cut(width: int, findings: Findings, manifest: Manifest) -> None:
    text = printed(findings, manifest, width)
    assert "…" not in text
    assert "1.42×" in text
    assert ("lockstep (ngram" in text) or ("lockstep" in text)
    assert max(len(line) for line in text.splitlines()) <= width


def test_what_would_settle_it_stands_in_the_terminal(findings: Findings, manifest: Manifest) -> None:
    condition = findings.conditions[0]
    profile = condition.profiles[0]
    open_end = replace(
        profile.break_even["output_tokens_per_s"],
        status=BreakEvenStatus.INCONCLUSIVE,
        crossings=(),
        sentence="not settled (no level differs): measure 2 more repeats at 8 (about 40 s of measuring)",
    )
    profile = replace(profile, break_even={"output_tokens_per_s": open_end})
    unsettled = replace(findings, conditions=(replace(condition, profiles=(profile,)),))
    assert "measure 2 more repeats at 8" in " ".join(printed(unsettled, manifest).split())


def test_wide_terminals_show_every_column(findings: Findings, manifest: Manifest) -> None:
    wide = printed(findings, manifest, 140)
    assert "! lockstep" in wide
    assert "mean" in wide
    assert wide.count("ok") > 5


def test_the_simulated_hardware_is_named(findings: Findings, manifest: Manifest) -> None:
    assert "SIMULATED h200-8b" in printed(findings, manifest)


def test_a_real_run_has_no_simulated_banner(findings: Findings, manifest: Manifest) -> None:
    assert "SIMULATED" not in printed(replace(findings, simulated=False), manifest)


def test_colour_adds_nothing_but_colour(findings: Findings, manifest: Manifest) -> None:
    assert "\x1b[32m" in printed(findings, manifest, colour=True)


def test_degenerate_findings_print(degenerate: dict[str, Findings], manifest: Manifest) -> None:
    for found in degenerate.values():
        text = printed(found, manifest)
        assert "nan" not in text.lower().replace("finance", "")
        assert found.answer[:20] in text
    assert "n/a" in printed(degenerate["all invalid"], manifest)


def test_c102_text_from_outside_cannot_steer_the_terminal(hostile_findings: Findings, manifest: Manifest) -> None:
    bad = replace(hostile_findings, answer="[red]x[/red] [bold \x1b]0;title\x07")
    text = printed(bad, manifest, colour=True)
    assert "\x1b]" not in text
    assert "\x07" not in text
    assert "[red]x[/red]" in text
