"""The charts' data: what is drawn is what was found."""

import math
from dataclasses import replace
from typing import Any

import pytest

from loadgen.analysis.model import ConditionFinding, Findings
from loadgen.report.chart import Chart
from loadgen.report.figures import charts, pooled_positions
from loadgen.report.summary import dumps


def chart(condition: ConditionFinding, key: str) -> Chart:
    return next(c for c in charts(condition, "baseline") if c.key == key)


def named(found: Chart, name: str) -> Any:
    return next(trace for trace in found.figure["data"] if trace.get("name") == name)


def test_levels_stand_at_log2_with_their_names(findings: Findings) -> None:
    axis = chart(findings.conditions[0], "speedup").figure["layout"]["xaxis"]
    assert axis["ticktext"] == ["1", "2", "4", "8", "16", "32"]
    assert axis["tickvals"] == [0, 1, 2, 3, 4, 5]


def test_speedups_bands_and_break_even(findings: Findings) -> None:
    condition = findings.conditions[0]
    found = chart(condition, "speedup")
    line = named(found, "ngram")
    speedups = [r.speedup.value for r in condition.profiles[0].levels if r.speedup]
    assert line["y"] == speedups
    band = next(t for t in found.figure["data"] if t.get("fill"))
    assert len(band["x"]) == 12
    assert min(band["y"]) < min(speedups)
    crossing = condition.profiles[0].break_even["output_tokens_per_s"].crossings[0]
    column = next(s for s in found.figure["layout"]["shapes"] if s["type"] == "rect")
    assert (column["x0"], column["x1"]) == pytest.approx([math.log2(v) for v in crossing.ci95])
    assert any(s["type"] == "line" and s["y0"] == s["y1"] == 1 for s in found.figure["layout"]["shapes"])


def test_void_levels_are_crosses_and_no_part_of_the_line(findings: Findings) -> None:
    found = chart(findings.conditions[1], "speedup")
    assert 5 not in named(found, "ngram")["x"]
    cross = named(found, "ngram: void")
    assert cross["x"] == [5]
    assert "client-bound" in cross["text"][0]


def test_profiles_differ_without_colour(large_findings: Findings) -> None:
    traces = [
        t for t in chart(large_findings.conditions[0], "throughput").figure["data"] if t["mode"] == "lines+markers"
    ]
    looks = {(t["line"]["dash"], t["marker"]["symbol"]) for t in traces}
    assert len(looks) == len(traces) == 7


def test_many_profiles_get_the_diagonal(large_findings: Findings, findings: Findings) -> None:
    assert chart(large_findings.conditions[0], "why").figure["layout"]["xaxis"]["title"]["text"].startswith("cost")
    assert len(chart(findings.conditions[0], "why").figure["data"]) == 2


def test_positions_are_pooled_by_drafts(findings: Findings) -> None:
    one, two, *_ = findings.conditions[0].profiles[0].levels
    rows = [
        replace(one, acceptance_per_position=(0.8, 0.4), drafts=100.0),
        replace(two, acceptance_per_position=(0.4,), drafts=300.0),
        replace(two, acceptance_per_position=(0.0, 0.0), drafts=1e9, valid=False),
    ]
    assert pooled_positions(rows) == pytest.approx([0.5, 0.4])


def test_nothing_not_finite_is_drawn(degenerate: dict[str, Findings]) -> None:
    for found in degenerate.values():
        for condition in found.conditions:
            for item in charts(condition, "baseline"):
                assert "null" not in dumps(item.figure)


def test_close_levels_share_ticks(findings: Findings) -> None:
    profile = findings.conditions[0].profiles[0]
    rows = tuple(replace(profile.levels[0], concurrency=c) for c in range(1, 33))
    condition = replace(findings.conditions[0], profiles=(replace(profile, levels=rows),))
    ticks = chart(condition, "speedup").figure["layout"]["xaxis"]["ticktext"]
    assert len(ticks) < 14
    assert ticks[:4] == ["1", "2", "3", "4"]


def test_the_parts_add_up_to_the_speedup(findings: Findings) -> None:
    found = chart(findings.conditions[0], "parts0")
    *bars, total = found.figure["data"]
    assert [trace["type"] for trace in bars] == ["bar"] * 6
    sums = [sum(bar["y"][i] for bar in bars) for i in range(6)]
    assert sums == pytest.approx(total["y"])
    assert total["text"][0] == "speed-up: 1.42×"
    assert len({bar["marker"]["pattern"]["shape"] for bar in bars}) == 6
