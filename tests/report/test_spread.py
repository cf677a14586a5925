"""Every number carries its n and its spread, whatever the width; a penalty in first tokens is told."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from loadgen.analysis.model import Estimate, Findings
from loadgen.report import view
from loadgen.report.columns import SPREAD_KEY, counts, penalties, spread
from loadgen.report.depth import depth_words, depths
from loadgen.report.html import render_html
from loadgen.report.markdown import render_markdown
from loadgen.report.terminal import print_findings
from loadgen.store.model import Manifest


def printed(findings: Findings, manifest: Manifest, width: int) -> str:
    out = io.StringIO()
    print_findings(Console(file=out, width=width), findings, manifest)
    return out.getvalue()


@pytest.mark.parametrize("width", [40, 60, 72, 80, 100, 120])
def test_n_and_its_heading_are_never_dropped(width: int, findings: Findings, manifest: Manifest) -> None:
    text = printed(findings, manifest, width)
    heads = [line.split() for line in text.splitlines() if line.split()[:1] == ["conc"]]
    assert heads
    for head in heads:
        assert "n" in head
        assert head[-1] == "checks"
    assert SPREAD_KEY in " ".join(text.split())


def test_the_overview_has_n_and_spread(findings: Findings, manifest: Manifest) -> None:
    row = view.glance(findings)[0]
    assert row.cells[0].spread == "± 0.03"
    assert row.n == "3"
    assert "**1.42×** ± 0.03" in render_markdown(findings, manifest)
    page = render_html(findings, manifest)
    assert '1.42×<br><span class="spread">± 0.03</span>' in page
    assert view.GLANCE_KEY in page


def test_without_an_interval_there_is_only_n() -> None:
    assert spread(Estimate(1.2, 1)) == ""
    assert (counts([3, 3]), counts([3, 1]), counts([])) == ("3", "1–3", "0")


def test_a_sure_ttft_penalty_is_told(findings: Findings, manifest: Manifest) -> None:
    condition = findings.conditions[0]
    profile = condition.profiles[0]
    first, second, third, *rest = profile.levels
    levels = (
        replace(first, ttft_ratio=Estimate(2.2, 3, (2.0, 2.4)), ttft_p50_s=0.109, baseline_ttft_p50_s=0.049),
        replace(second, ttft_ratio=Estimate(2.2, 3, (0.9, 3.9))),
        replace(third, ttft_ratio=Estimate(1.1, 3, (1.05, 1.15))),
        *(replace(one, ttft_ratio=None) for one in rest),
    )
    line = "TTFT 2.20× as long at 1 (109 ms against 49.0 ms)"
    assert penalties(levels) == (line,)
    told = replace(
        findings, conditions=(replace(condition, profiles=(replace(profile, levels=levels),)), *findings.conditions[1:])
    )
    assert line in printed(told, manifest, 80)
    assert line in render_html(told, manifest)
    assert "TTFT 2.20× as long at 1" in render_markdown(told, manifest)


def test_a_constant_schedule_has_the_k_of_its_range(findings: Findings, manifest: Manifest) -> None:
    rungs = {"ngram": {"of": "ngram", "k": 2, "constant_schedule": True}, "zero": {"of": "ngram", "k": 0}}
    own = replace(manifest, settings={"ladder": rungs}, num_speculative_tokens={"ngram": 4, "zero": 4, "suffix": 8})
    assert depths(own) == {"ngram": 2, "zero": 0, "suffix": 8}
    assert depth_words(own, "zero") == " (K = 0)"
    assert depth_words(own, "baseline") == ""
    page = render_markdown(findings, own)
    assert "ngram (K = 2) against" in page
    assert "(K = 4)" not in page
    assert "ngram K = 2, zero K = 0, suffix K = 8" in page
    assert '<span class="soft">K = 2</span>' in render_html(findings, own)


def test_an_extended_run_says_how_many_repeats(findings: Findings, manifest: Manifest) -> None:
    own = replace(manifest, repeats=3, sessions=1, settings={"extensions": [[[16, 6], [32, 6]]]})
    assert ("Repeats", "3 to 6 × 1 session") in view.head_facts(findings, own, ())
    assert ("Repeats", "3 × 1 session") in view.head_facts(findings, replace(own, settings={}), ())
