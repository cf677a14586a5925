"""What the exporter shows of a runs folder."""

import json
import math
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from loadgen.commands.exporter_runs import RunsCollector, exposition
from loadgen.commands.exporter_tail import BUCKETS, RequestTail
from loadgen.load.record import Outcome, RequestRecord
from loadgen.metrics.parse import Snapshot, parse
from loadgen.report.exported import exported_sample_names, shown_findings
from loadgen.store.folder import RunFolder
from loadgen.store.model import CellKey, Condition

KEY = CellKey("ngram", Condition("code-edit", 300, 0.0), 16, 0)


def record(ttft: float = 0.05, tpot: float = 0.002, tokens: int = 11, outcome: Outcome = Outcome.OK) -> RequestRecord:
    last = 10.0 + ttft + tpot * (tokens - 1)
    return RequestRecord(
        "p", 0, outcome, 10.0, last, first_token_s=10.0 + ttft, last_token_s=last, output_tokens=tokens
    )


def value(body: Snapshot, name: str, **labels: str) -> float:
    (found,) = [s.value for s in body.samples[name] if labels.items() <= dict(s.labels).items()]
    return found


@pytest.fixture
def run(runs: Path) -> RunFolder:
    return RunFolder(next(runs.iterdir()))


def test_every_name_is_declared_and_the_body_is_well_formed(runs: Path) -> None:
    text = exposition(RunsCollector(runs)).decode()
    names = {sample.name for family in text_string_to_metric_families(text) for sample in family.samples}
    assert names <= exported_sample_names()
    assert len(names) > 20


def test_findings_show_with_their_bands(runs: Path) -> None:
    body = parse(exposition(RunsCollector(runs)))
    where = {"profile": "ngram", "workload": "code-edit", "concurrency": "16"}
    assert value(body, "loadgen_speedup", **where) == 0.9
    assert value(body, "loadgen_speedup_low", **where) == pytest.approx(0.85)
    assert value(body, "loadgen_speedup_high", **where) == pytest.approx(0.95)
    assert value(body, "loadgen_output_tokens_per_second", **{**where, "profile": "baseline"}) == 2400.0
    turn = {"workload": "code-edit", "measure": "tpot"}
    assert value(body, "loadgen_break_even_concurrency", **turn) == 11.5
    assert value(body, "loadgen_break_even_concurrency_high", **turn) == 14.0
    assert value(body, "loadgen_costs_above_concurrency", **turn) == 14.0
    assert value(body, "loadgen_costs_above_concurrency", workload="chat", measure="tpot") == 0.0
    assert value(body, "loadgen_break_even_status", workload="chat", measure="tpot", status="never_pays") == 1.0
    assert value(body, "loadgen_schedule_edge", range="1") == 11.0
    assert value(body, "loadgen_schedule_tokens", concurrency="8") == 4.0
    assert value(body, "loadgen_schedule_tokens", concurrency="16") == 0.0
    assert value(body, "loadgen_run_info", state="completed") == 1.0


def found(status: str, crossings: list[dict[str, Any]]) -> dict[str, Any]:
    verdict = {"output_tokens_per_s": {"status": status, "crossings": crossings}}
    profile = {"levels": [], "break_even": verdict}
    condition = {"workload": "w", "input_tokens": 1, "temperature": 0.5, "profiles": {"ngram": profile}}
    return {"run_id": "r", "against": "baseline", "conditions": [condition], "recommendation": None}


@pytest.mark.parametrize(
    ("status", "crossings", "above"),
    [
        ("pays_throughout", [], math.inf),
        ("never_pays", [], 0.0),
        ("inconclusive", [], None),
        ("found", [{"concurrency": 4.0, "ci95": [3.0, 6.0], "direction": "down"}], 6.0),
        ("found", [{"concurrency": 4.0, "ci95": [3.0, 6.0], "direction": "up"}], None),
        ("found", [{"concurrency": 4.0, "ci95": [None, None], "direction": "down"}], None),
    ],
)
def test_the_load_above_which_it_surely_costs(
    status: str, crossings: list[dict[str, Any]], above: float | None
) -> None:
    shown = [s.value for s in shown_findings(found(status, crossings)) if s.name == "loadgen_costs_above_concurrency"]
    assert shown == ([] if above is None else [above])


def test_conditions_of_one_workload_keep_apart() -> None:
    whole = found("never_pays", [])
    whole["conditions"].append({**whole["conditions"][0], "input_tokens": 2})
    names = {s.labels["condition"] for s in shown_findings(whole) if "condition" in s.labels}
    assert names == {"w, 1 tokens, T 0.5", "w, 2 tokens, T 0.5"}


def test_requests_are_counted_as_they_come(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    tail = RequestTail(tmp_path / "requests.jsonl")
    tail.expect([("ngram", "code-edit", "16")])
    tail.look()  # no file yet
    key = ("ngram", "code-edit", "16")
    assert tail.outcomes[key, "measure", "ok"] == 0
    folder.append_request(KEY, record())
    folder.append_request(KEY, record(), "warmup")
    tail.look()
    folder.append_request(KEY, record(outcome=Outcome.TIMEOUT))
    folder.close()
    with (tmp_path / "requests.jsonl").open("ab") as file:
        file.write(b'{"torn')
    tail.look()
    tail.look()
    assert tail.outcomes == {
        (key, "measure", "ok"): 1,
        (key, "warmup", "ok"): 1,
        (key, "measure", "timeout"): 1,
    }
    assert tail.last_cell == KEY
    rows = dict(tail.histograms["loadgen_tpot_seconds"][key].cumulative())
    assert rows["+Inf"] == 1.0
    bounds = [float(bound) for bound, count in rows.items() if count == 0]
    assert 0.0016 <= max(bounds) < 0.002


def test_buckets_tell_one_millisecond_from_one_and_a_half() -> None:
    bounds = BUCKETS["loadgen_tpot_seconds"]
    assert list(bounds) == sorted(set(bounds))
    assert sum(0.001 <= bound <= 0.0015 for bound in bounds) >= 1
    assert bounds[0] < 0.0005
    assert bounds[-1] > 0.1


def test_a_folder_of_another_version_hides_no_other(runs: Path) -> None:
    broken = runs / "2027-01-01T00-00-00Z-broken"
    broken.mkdir()
    (broken / "manifest.json").write_text("{}")
    body = parse(exposition(RunsCollector(runs)))
    (broken / "manifest.json").unlink()
    broken.rmdir()
    assert value(body, "loadgen_run_newest") == 1.0


def test_an_empty_or_missing_folder_shows_nothing(tmp_path: Path) -> None:
    assert exposition(RunsCollector(tmp_path / "none")) == b""


def test_a_changed_summary_is_read_again(
    runs: Path, run: RunFolder, make_summary: Callable[[str], dict[str, Any]]
) -> None:
    collector = RunsCollector(runs)
    where = {"profile": "ngram", "workload": "code-edit", "concurrency": "16"}
    path = run.path / "summary.json"
    before = path.read_text()
    assert value(parse(exposition(collector)), "loadgen_speedup", **where) == 0.9
    whole = make_summary(run.run_id)
    whole["conditions"][0]["profiles"]["ngram"]["levels"][1]["speedup"] = 0.7
    path.write_text(json.dumps(whole))
    assert value(parse(exposition(collector)), "loadgen_speedup", **where) == 0.7
    path.write_text(before)


def test_the_command_serves_them(runs: Path) -> None:
    words = [sys.executable, "-u", "-m", "loadgen", "exporter", "--runs", str(runs), "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        match = re.match(r"(http://127\.0\.0\.1:\d+/metrics) shows", process.stdout.readline())
        assert match
        with urllib.request.urlopen(match[1]) as answer:
            body = parse(answer.read(), answer.headers["Content-Type"])
        process.terminate()
    assert value(body, "loadgen_run_newest") == 1.0
