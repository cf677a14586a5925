"""A ladder, its schedule and its verification in every report."""

import math
from dataclasses import replace

import jsonschema
import pytest
from rich.console import Console

from loadgen.analysis.ladder import LadderArm
from loadgen.analysis.model import ConditionFinding, Findings
from loadgen.analysis.schedule import Choice
from loadgen.analysis.schedule_ladder import ladder_findings
from loadgen.analysis.verify_model import Claim, Comparison, Role, Verdict, Verification
from loadgen.report.html import render_html
from loadgen.report.markdown import render_markdown
from loadgen.report.schedule_sections import is_rung, sections, verified_words
from loadgen.report.summary import dumps, json_schema, summary
from loadgen.report.terminal import print_findings
from loadgen.report.words import compact
from loadgen.store.model import Manifest

ARMS = {
    "ngram-k2": LadderArm("ngram", 2),
    "ngram-k4": LadderArm("ngram", 4),
    "ngram-schedule-k0": LadderArm("ngram", 0, constant_schedule=True),
    "ngram-schedule-k2": LadderArm("ngram", 2, constant_schedule=True),
    "ngram-schedule-k4": LadderArm("ngram", 4, constant_schedule=True),
}


def verification(findings: Findings, verdict: Verdict, ratio: float = 0.62) -> Verification:
    condition = findings.conditions[0].condition
    ranges = ((1, 8, 4), (9, 256, 0))
    roles = {Role.NONE: "baseline", Role.STATIC: "ngram-k4", Role.SCHEDULE: "ngram-schedule"}
    claim = Claim(Choice.SCHEDULE, "ngram", condition, 4, ranges, ranges, (8,), roles)
    compared = Comparison("8", 8, Role.SCHEDULE, Role.STATIC, ratio, 3, (0.6, 0.64), 0.99, 0.001, verdict, "worse")
    return Verification(
        verdict,
        claim,
        0.02,
        "as asked",
        (compared, replace(compared, place="open loop across 8", ci90=None, standing="open")),
        "the schedule [[1,8,4],[9,256,0]] does not hold.",
        more_s=75.0,
        overrides=("ngram-schedule: Overriding cudagraph_mode <b>from</b> FULL to PIECEWISE",),
        notes=("within one start of each server",),
        seed=7,
    )


@pytest.fixture
def laddered(findings: Findings) -> Findings:
    """The findings' first profile as every rung, scaled."""
    first = findings.conditions[0]
    source = first.profiles[0]
    profiles = tuple(replace(source, profile=name) for name in ARMS)
    conditions = (ConditionFinding(first.condition, profiles),)
    ladders = ladder_findings(conditions, ARMS, max_num_seqs=256)
    return replace(findings, conditions=conditions, ladders=ladders, verification=verification(findings, Verdict.FAILS))


def test_the_verification_comes_first_then_each_ladder_and_its_schedule(laddered: Findings) -> None:
    verified, ladder, schedule = sections(laddered)
    assert (verified.tag, verified.tone) == ("does not hold", "loss")
    assert verified.rows[0] == ("8", "the schedule", "static K = 4", "0.62×", "0.60–0.64", "3", "worse")
    assert verified.rows[1][4] == "n/a"
    header = ("in flight", "K = 2", "K = 4", "sched. K = 0", "sched. K = 2", "sched. K = 4", "n", "best K")
    assert ladder.header == header
    assert ladder.rows[0][1] == "1.42× ± 0.03"
    assert ladder.rows[0][-2] == "3"
    assert schedule.header[-1] == "n"
    assert {row[-1] for row in schedule.rows} == {"3"}
    assert all("no spread" in " ".join(section.notes) for section in (ladder, schedule))
    assert len(ladder.rows) == len(laddered.conditions[0].profiles[0].levels)
    assert "in requests per step" in schedule.lead[0]
    assert sections(replace(laddered, ladders=(), verification=None)) == ()


def test_rungs_have_one_table_in_the_terminal(laddered: Findings, manifest: Manifest) -> None:
    assert is_rung(laddered, "ngram-k4")
    assert not is_rung(laddered, "suffix")
    for width in (40, 80, 160):
        console = Console(width=width, force_terminal=False)
        with console.capture() as capture:
            print_findings(console, laddered, manifest)
        text = capture.get()
        assert "Speed-up by K: ngram" in text
        assert "Measured again" in text
        assert "against baseline" not in text
        assert max(map(len, text.splitlines())) <= width


def test_markdown_and_html_hold_all_three_and_stay_text(laddered: Findings, manifest: Manifest) -> None:
    for page in (render_markdown(laddered, manifest), render_html(laddered, manifest)):
        for title in ("Measured again", "Speed-up by K", "The schedule"):
            assert title in page
        assert "<b>from</b>" not in page


def test_the_summary_follows_its_schema(laddered: Findings, manifest: Manifest) -> None:
    for found in (laddered, replace(laddered, ladders=(), verification=None)):
        jsonschema.validate(summary(found, manifest), json_schema())
    odd = replace(laddered, verification=verification(laddered, Verdict.OPEN, math.nan))
    assert "NaN" not in dumps(summary(odd, manifest))
    jsonschema.validate(summary(odd, manifest), json_schema())


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_report_says_how_far_the_advice_was_tested(
    verdict: Verdict, laddered: Findings, manifest: Manifest
) -> None:
    found = replace(laddered, verification=verification(laddered, verdict))
    words = {Verdict.HOLDS: "holds", Verdict.FAILS: "does not hold", Verdict.OPEN: "not resolved"}[verdict]
    console = Console(width=200, force_terminal=False)
    with console.capture() as capture:
        print_findings(console, found, manifest)
    for page in (capture.get(), render_markdown(found, manifest), render_html(found, manifest)):
        assert f"re-measured: {words}" in page
    assert verified_words(replace(laddered, verification=None)) == "not re-measured yet"


def test_two_pools_are_written_for_a_person() -> None:
    value = {"num_speculative_tokens": 4, "edges": [[1, 12, 4], [13, 256, 0]]}
    assert compact(value) == "num_speculative_tokens 4, edges [[1,12,4],[13,256,0]]"
