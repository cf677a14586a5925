"""Single requests and gauges: read from the folder, drawn as distributions and timelines."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from loadgen.analysis.model import Findings
from loadgen.load.record import Outcome, RequestRecord
from loadgen.metrics.model import GaugeSample
from loadgen.report.detail import Detail, Latencies, read_detail
from loadgen.report.html import render_html
from loadgen.report.latency import spread, tail
from loadgen.report.timeline import MAX_POINTS, timelines
from loadgen.report.traces import Series
from loadgen.store.folder import RunFolder
from loadgen.store.model import CellResult, Manifest


@pytest.fixture
def series(findings: Findings) -> list[Series]:
    return [Series(findings.conditions[0].profiles[0], 0)]


def record(outcome: Outcome, ttft_s: float) -> RequestRecord:
    return RequestRecord("p", 0, outcome, 10.0, 12.0, first_token_s=10 + ttft_s, last_token_s=11.5, output_tokens=11)


def test_a_folder_without_detail_gives_none(tmp_path: Path) -> None:
    assert read_detail(tmp_path) == Detail([], {})


def test_measured_and_good_requests_count(tmp_path: Path, cells: tuple[CellResult, ...]) -> None:
    run = RunFolder(tmp_path)
    key = cells[0].key
    run.append_request(key, record(Outcome.OK, 0.5))
    run.append_request(key, record(Outcome.TIMEOUT, 0.7))
    run.append_request(key, record(Outcome.OK, 0.9), "warmup")
    run.append_gauges(key, (GaugeSample(1.0, 4.0, 0.0, 0.1, 0.01),))
    run.close()
    found = read_detail(tmp_path)
    place = found.latencies[key.condition, key.profile, key.level]
    assert place.ttft_s == pytest.approx([0.5])
    assert place.tpot_s == pytest.approx([0.1])
    assert found.gauges[0][0] == "baseline"


def test_a_broken_line_is_said_and_breaks_nothing(tmp_path: Path, findings: Findings, manifest: Manifest) -> None:
    (tmp_path / "requests.jsonl").write_bytes(b"{not json}\n")
    found = read_detail(tmp_path)
    assert "requests.jsonl:1" in found.problem
    assert "requests.jsonl:1" in render_html(findings, manifest, (), (), found)


def test_tails_take_the_median_over_repeats(series: list[Series], cells: tuple[CellResult, ...]) -> None:
    changed = [
        replace(c, ttft_s=replace(c.ttft_s, p99=(0.1, 0.2, 0.9)[c.key.repeat])) for c in cells if c.key.level == 4
    ]
    found = tail(series, changed, cells[0].key.condition, "baseline", "ttft")
    assert [trace["y"] for trace in found.figure["data"]] == [pytest.approx([200.0]), pytest.approx([200.0])]
    assert found.figure["data"][0]["text"] == ["4 in flight: 200 ms, 120 requests"]


def test_distributions_show_one_level_at_a_time(series: list[Series], detail: Detail, findings: Findings) -> None:
    found = spread(series, detail.latencies, findings.conditions[0].condition, "baseline", "ttft")
    assert found is not None
    data = found.figure["data"]
    assert len(data) == 12
    assert sum(trace["visible"] for trace in data) == 2
    buttons = found.figure["layout"]["updatemenus"][0]["buttons"]
    assert [b["label"] for b in buttons] == [f"{level} in flight" for level in (1, 2, 4, 8, 16, 32)]
    assert all(sum(b["args"][1]) == 2 for b in buttons)
    assert data[0]["x"] == sorted(data[0]["x"])


def test_few_requests_are_no_distribution(series: list[Series], findings: Findings) -> None:
    condition = findings.conditions[0].condition
    few = {(condition, "baseline", 4): Latencies([0.1, 0.2], [])}
    assert spread(series, few, condition, "baseline", "ttft") is None


def test_timelines_cut_pauses_and_break_between_profiles(series: list[Series]) -> None:
    def sample(at_s: float) -> GaugeSample:
        return GaugeSample(at_s, 4.0, 0.0, 0.5, 0.01)

    gauges = [
        ("baseline", sample(100.0)),
        ("baseline", sample(100.5)),
        ("ngram", sample(300.0)),
        ("baseline", sample(1.0)),
    ]
    running = next(chart for chart in timelines(series, (), gauges, "baseline") if chart.key == "running")
    lines = {trace["name"]: trace for trace in running.figure["data"]}
    assert lines["baseline"]["x"] == [0.0, 0.5, None, 1.5]
    assert lines["ngram"]["x"] == [1.0]


def test_long_runs_are_thinned(series: list[Series]) -> None:
    gauges = [("ngram", GaugeSample(i / 2, 4.0, 0.0, 0.5, 0.01)) for i in range(20_000)]
    charts = timelines(series, (), gauges, "baseline")
    assert charts
    for chart in charts:
        assert len(json.dumps(chart.figure)) < 120_000
        assert all(len(trace["x"]) <= MAX_POINTS for trace in chart.figure["data"])
