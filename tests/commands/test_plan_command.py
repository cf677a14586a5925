"""`loadgen plan`, `compare`, `import` and `report` over several runs, as a user calls them."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner, Result

from loadgen.analysis.capacity_model import Demand
from loadgen.cli import app
from loadgen.commands.plan_demand import busiest, demand_of, dispersion, of_trace
from loadgen.errors import UsageError
from loadgen.load.record import Outcome, RequestRecord
from loadgen.report.plan_json import plan_schema
from loadgen.store.folder import RunFolder
from loadgen.store.model import Condition
from loadgen.store.open_cells import append_open_cell, open_cell, open_cells

ROOT = Path(__file__).resolve().parents[2]
FOREIGN = ROOT / "tests" / "data" / "foreign"
RUNNER = CliRunner()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one small run of two profiles."""
    sys.path.insert(0, str(ROOT))
    try:
        from tools.make_large_run import Size, write_large_run
    finally:
        sys.path.remove(str(ROOT))
    path: Path = tmp_path_factory.mktemp("runs")
    write_large_run(path / "one", Size(levels=(1, 4, 16), profiles=("ngram", "suffix"), repeats=3, chunks=20_000))
    return path


def call(*words: object) -> Result:
    return RUNNER.invoke(app, [str(word) for word in words])


def plan(runs: Path, *words: str) -> dict[str, Any]:
    done = call("plan", "one", "--runs", runs, "--json", "--slo", "ttft_p90=500ms", "--slo", "tpot_p50=1s", *words)
    assert done.exit_code == 0, done.output
    data: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(data, plan_schema())
    return data


def test_a_plan_by_rate_follows_its_schema_and_writes_its_files(runs: Path) -> None:
    data = plan(runs, "--rate", "30/min", "--gpu-hour", "2.5", "--gpu-watts", "450")
    assert {offer["setting"] for offer in data["offers"]} >= {"baseline", "ngram", "suffix"}
    assert all(offer["capacity"]["basis"] == "closed-loop estimate" for offer in data["offers"])
    assert all(offer["fleet"]["cost_per_million_tokens"] > 0 for offer in data["offers"])
    for name in ("plan.json", "plan.md", "plan.html"):
        assert (runs / "one" / name).stat().st_size > 1000
    assert json.loads((runs / "one" / "plan.json").read_text(encoding="utf-8")) == data


def test_a_plan_by_users(runs: Path) -> None:
    data = plan(runs, "--users", "40", "--think", "20s")
    assert data["demand"]["users"] == 40
    assert all(offer["capacity"]["unit"] == "users" for offer in data["offers"])


def test_a_plan_without_a_demand_gives_the_highest_level(runs: Path) -> None:
    data = plan(runs)
    assert all(offer["capacity"] is None for offer in data["offers"])
    assert all(offer["ceiling"]["by_estimate"] == 16 and offer["ceiling"]["open_ended"] for offer in data["offers"])


def test_measured_rates_are_the_basis_where_they_are(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "one", tmp_path / "one")
    condition = RunFolder(tmp_path / "one").manifest().conditions[0]
    for rate, ttft in ((2.0, 0.1), (4.0, 0.9)):
        append_open_cell(tmp_path / "one", _open(condition, rate, ttft))
    data = plan(tmp_path, "--rate", "6/s")
    ngram = next(offer for offer in data["offers"] if offer["setting"] == "ngram")
    assert (ngram["capacity"]["per_server"], ngram["capacity"]["basis"]) == (2.0, "open-loop")
    assert ngram["fleet"]["servers"] == 3
    assert [one["verdict"] for one in ngram["open_loop"]] == ["met", "missed"]


def _open(condition: Condition, rate: float, ttft_s: float) -> Any:
    records = tuple(
        RequestRecord(
            f"p/{i}",
            0,
            Outcome.OK,
            i / rate + 0.1,
            i / rate + ttft_s + 1,
            scheduled_s=i / rate,
            first_token_s=i / rate + ttft_s,
            last_token_s=i / rate + ttft_s + 1,
            output_tokens=101,
        )
        for i in range(200)
    )
    return open_cell(
        "ngram",
        condition,
        rate,
        seed=1,
        started_at="",
        records=records,
        in_flight_mean=1.0,
        loop_lag_p99_s=0.001,
    )


def test_open_cells_read_back_and_the_later_of_two_counts(tmp_path: Path) -> None:
    condition = Condition("chat", 60, 0.0)
    append_open_cell(tmp_path, _open(condition, 2.0, 0.5))
    append_open_cell(tmp_path, _open(condition, 2.0, 0.1))
    (cell,) = open_cells(tmp_path)
    # from the scheduled start, not from the send
    assert cell.ttft_s[0] == pytest.approx(0.1)
    assert cell.tpot_s[0] == pytest.approx(0.01)


def test_no_setting_within_objectives_is_exit_code_1(runs: Path) -> None:
    done = call("plan", "one", "--runs", runs, "--slo", "ttft_p99=1us", "--rate", "1/s")
    assert done.exit_code == 1
    assert "no setting meets the objectives" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--rate", "12"], "is no rate"),
        (["--users", "40"], "belong together"),
        (["--rate", "1/s", "--users", "4", "--think", "1s"], "give one of them"),
        (["--mix", "chat=1"], "shares out a demand"),
    ],
)
def test_a_wrong_demand_is_one_sentence(runs: Path, words: list[str], sentence: str) -> None:
    done = call("plan", "one", "--runs", runs, "--slo", "ttft_p99=1s", *words)
    assert isinstance(done.exception, UsageError)
    assert sentence in str(done.exception)


def test_a_trace_is_planned_by_its_busiest_minute(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    times = [*(float(i) for i in range(300)), *(300 + i / 4 for i in range(240))]
    path.write_text(
        "".join(json.dumps({"timestamp": t * 1000, "input_length": 10, "output_length": 10}) + "\n" for t in times)
    )
    rate, words = of_trace(path)
    assert rate == pytest.approx(4.0)
    assert "trace.jsonl" in words
    found = demand_of(None, None, None, path, None)
    assert found == Demand(rate_per_s=rate, source=words)


def test_bursts_are_counted() -> None:
    assert busiest([0.0, 1.0, 1.1, 1.2, 9.0], 0.5) == 3
    assert (dispersion([float(i // 10 * 10) for i in range(1000)]) or 0) > 5
    assert dispersion([0.0, 1.0]) is None


def pair(baseline: str, profile: str) -> list[object]:
    return ["--baseline", FOREIGN / f"{baseline}.json", "--profile", FOREIGN / f"{profile}.json"]


def test_import_makes_a_run_with_the_true_turn(tmp_path: Path) -> None:
    files = [w for c in (1, 2, 4, 8, 16) for w in pair(f"vllm-baseline-c{c}", f"vllm-ngram-c{c}")]
    done = call("import", "--method", "ngram", "--k", "4", "--runs", tmp_path, "--json", *files)
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    found = data["conditions"][0]["profiles"]["ngram"]["break_even"]["output_tokens_per_s"]
    # planted: 1.05 at 8, 0.85 at 16
    assert found["status"] == "found"
    assert 8 <= found["crossings"][0]["concurrency"] < 16
    assert any("acceptance is over each whole run" in note for note in data["notes"])
    assert any("same prompts" in note for note in data["notes"])
    assert data["simulated"] is False


def test_import_of_guidellm_and_aiperf(tmp_path: Path) -> None:
    common = ["--method", "eagle3", "--k", "2", "--runs", tmp_path, "--json"]
    whole = call(
        "import",
        *common,
        "--baseline",
        FOREIGN / "guidellm-baseline.json",
        "--profile",
        FOREIGN / "guidellm-ngram.json",
    )
    assert whole.exit_code == 0, whole.output
    assert any("acceptance is not known" in note for note in json.loads(whole.stdout)["notes"])
    files = [
        w
        for c in (1, 16)
        for w in (
            "--baseline",
            FOREIGN / f"aiperf-baseline-c{c}.json",
            "--profile",
            FOREIGN / f"aiperf-ngram-c{c}.json",
        )
    ]
    assert call("import", *common, *files).exit_code == 0


def test_import_refuses_two_tools_and_no_common_level(tmp_path: Path) -> None:
    common = ["--method", "ngram", "--k", "4", "--runs", tmp_path]
    mixed = call(
        "import",
        *common,
        "--baseline",
        FOREIGN / "vllm-baseline-c1.json",
        "--profile",
        FOREIGN / "aiperf-ngram-c1.json",
    )
    assert "take one tool" in str(mixed.exception)
    apart = call(
        "import", *common, "--baseline", FOREIGN / "vllm-baseline-c1.json", "--profile", FOREIGN / "vllm-ngram-c2.json"
    )
    assert "no concurrency in common" in str(apart.exception)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def two(runs: Path, tmp_path: Path) -> Path:
    for name in ("one", "two"):
        shutil.copytree(runs / "one", tmp_path / name)
    manifest = json.loads((tmp_path / "two" / "manifest.json").read_text(encoding="utf-8"))
    changes = {"run_id": "two", "hardware": {"gpu": "<script>alert(1)</script>"}}
    (tmp_path / "two" / "manifest.json").write_text(json.dumps(manifest | changes), encoding="utf-8")
    return tmp_path


def test_compare_shows_one_difference_and_refuses_two(two: Path) -> None:
    done = call("compare", "one", "two", "--runs", two, "--json")
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert [difference["field"] for difference in data["differences"]] == ["hardware"]
    assert all(change["ratio"] == pytest.approx(1.0) for change in data["changes"])
    manifest = json.loads((two / "two" / "manifest.json").read_text(encoding="utf-8"))
    (two / "two" / "manifest.json").write_text(json.dumps(manifest | {"seed": 7}), encoding="utf-8")
    refused = call("compare", "one", "two", "--runs", two)
    assert "differ in 2 things" in str(refused.exception)
    assert "--allow seed" in str(refused.exception)
    assert call("compare", "one", "two", "--runs", two, "--allow", "seed").exit_code == 0
    unknown = call("compare", "one", "two", "--runs", two, "--allow", "moon")
    assert "moon is no field" in str(unknown.exception)


def test_several_runs_stand_on_one_page_with_outside_text_escaped(two: Path) -> None:
    done = call("report", "one", "two", "--runs", two)
    assert done.exit_code == 0, done.output
    page = (two / "side-by-side.html").read_text(encoding="utf-8")
    assert "2 runs side by side" in page
    assert "They differ in: hardware." in page
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    assert "SIMULATED" in page


def test_the_plans_page_and_markdown_escape_what_comes_from_outside(two: Path) -> None:
    path = two / "two" / "manifest.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"ngram"', '"<img src=x>|ng"'), encoding="utf-8")
    cells = two / "two" / "cells.jsonl"
    cells.write_text(cells.read_text(encoding="utf-8").replace('"ngram"', '"<img src=x>|ng"'), encoding="utf-8")
    requests = two / "two" / "requests.jsonl"
    requests.write_text(requests.read_text(encoding="utf-8").replace('"ngram"', '"<img src=x>|ng"'), encoding="utf-8")
    done = call("plan", "two", "--runs", two, "--slo", "ttft_p90=500ms")
    assert done.exit_code == 0, done.output
    assert "<img" not in (two / "two" / "plan.html").read_text(encoding="utf-8").replace("\\u003cimg", "")
    assert "<img" not in (two / "two" / "plan.md").read_text(encoding="utf-8")


def test_a_run_without_single_requests_cannot_be_planned(tmp_path: Path) -> None:
    common = ["--method", "ngram", "--k", "4", "--runs", tmp_path]
    assert call("import", *common, *pair("vllm-baseline-c8", "vllm-ngram-c8")).exit_code in (0, 3)
    done = call("plan", "latest", "--runs", tmp_path, "--slo", "ttft_p99=1s", "--json")
    assert done.exit_code == 3
    assert "no valid cell with single requests" in json.loads(done.stdout)["answer"]
