"""Where it pays: columns for few profiles, a strip of bars for many, and a schedule's edges on both."""

import math
from dataclasses import replace

import pytest

from loadgen.analysis.model import Findings, Recommendation, ScheduleEdges
from loadgen.report.chart import Chart
from loadgen.report.figures import charts
from loadgen.report.svg import speedup_svg
from loadgen.report.view import edges_in


def drawn(findings: Findings, edges: ScheduleEdges | None = None) -> Chart:
    found = charts(findings.conditions[0], "baseline", edges=edges)
    return next(one for one in found if one.key == "speedup")


@pytest.fixture
def edges(findings: Findings) -> ScheduleEdges:
    return ScheduleEdges("ngram", findings.conditions[0].condition, ((4, 5), (11, 12)))


def test_many_profiles_have_bars_in_rows_of_their_own_and_no_columns(large_findings: Findings) -> None:
    figure = drawn(large_findings).figure
    assert not [shape for shape in figure["layout"]["shapes"] if shape["type"] == "rect"]
    assert figure["layout"]["annotations"] == []
    bars = [trace for trace in figure["data"] if trace.get("yaxis") == "y2"]
    turning = [
        (profile.profile, crossing)
        for profile in large_findings.conditions[0].profiles
        for crossing in profile.break_even["output_tokens_per_s"].crossings
    ]
    assert len(bars) == len(turning) > 2
    assert len({bar["y"][0] for bar in bars}) == len({name for name, _ in turning})
    for bar, (_, crossing) in zip(bars, turning, strict=True):
        assert bar["x"] == pytest.approx(
            [math.log2(v) for v in (crossing.ci95[0], crossing.concurrency, crossing.ci95[1])]
        )
    assert figure["layout"]["yaxis"]["domain"][0] > figure["layout"]["yaxis2"]["domain"][1]


def test_many_profiles_without_a_turn_have_no_strip(large_findings: Findings) -> None:
    condition = large_findings.conditions[0]
    flat = tuple(replace(profile, break_even={}) for profile in condition.profiles)
    found = drawn(replace(large_findings, conditions=(replace(condition, profiles=flat),)))
    assert "yaxis2" not in found.figure["layout"]


def test_a_schedules_edges_stand_between_the_two_loads(findings: Findings, edges: ScheduleEdges) -> None:
    found = drawn(findings, edges)
    upright = [s for s in found.figure["layout"]["shapes"] if s["type"] == "line" and s.get("yref") == "paper"]
    at = [line["x0"] for line in upright]
    assert math.log2(5.5) in at
    assert math.log2(12.5) in at
    words = [note["text"] for note in found.figure["layout"]["annotations"]]
    assert "ngram: K changes above<br>11 per step (12 in flight)" in words
    assert "Upright lines" in found.shows
    assert "Upright lines" not in drawn(findings).shows


def test_edges_belong_to_the_condition_of_the_schedule(findings: Findings, edges: ScheduleEdges) -> None:
    advised = replace(findings, recommendation=Recommendation("s", [[1, 4, 4]], "", None, "", edges))
    first, *others = advised.conditions
    assert edges_in(advised, first) == edges
    assert others
    assert {edges_in(advised, other) for other in others} == {None}
    assert edges_in(replace(findings, recommendation=None), first) is None


def test_the_picture_has_them_too(findings: Findings, large_findings: Findings, edges: ScheduleEdges) -> None:
    few = speedup_svg(findings.conditions[0], edges)
    many = speedup_svg(large_findings.conditions[0])
    assert few is not None
    assert many is not None
    assert few.count("K changes above") == 2
    assert 'fill-opacity="0.13"' in few
    assert 'fill-opacity="0.13"' not in many
    assert many.count('stroke-width="5"') > 2
