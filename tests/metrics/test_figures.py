"""The figures of a delta in words, and `loadgen inspect metrics`."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from loadgen.commands import inspect_metrics
from loadgen.errors import UsageError
from loadgen.metrics.delta import delta
from loadgen.metrics.figures import as_json, describe
from loadgen.metrics.model import CounterDelta, HistogramDelta
from loadgen.metrics.parse import Snapshot, parse

INF = float("inf")


def forbid(token: str) -> Any:
    raise ValueError(token)


def run(*arguments: str) -> Any:
    app = typer.Typer()
    app.command()(inspect_metrics.command)
    return CliRunner().invoke(app, list(arguments))


def test_c77_both_acceptance_figures_name_their_formulas() -> None:
    lines = describe(CounterDelta(1.0, drafts=100, draft_tokens=300, accepted_tokens=120))
    assert "acceptance_rate         0.4   = Δaccepted_tokens / Δdraft_tokens" in lines
    assert any(line.startswith("mean_acceptance_length  2.2 tokens   = 1 + Δaccepted_tokens") for line in lines)


def test_c76_no_drafts_is_said_in_words() -> None:
    lines = describe(CounterDelta(1.0, drafts=0, draft_tokens=0, accepted_tokens=0))
    assert any("no drafts proposed" in line for line in lines)
    assert any(line.startswith("acceptance_rate         n/a") for line in lines)


def test_c70_absent_is_not_available_never_zero() -> None:
    lines = describe(CounterDelta(1.0))
    assert any(line.startswith("generation_tokens       n/a") for line in lines)
    assert any(line == "queue_time              n/a" for line in lines)


def test_c81_first_bucket_in_words() -> None:
    lines = describe(CounterDelta(1.0, inter_token_latency=HistogramDelta(200, 0.62, ((0.01, 200), (INF, 200)))))
    (line,) = [line for line in lines if line.startswith("inter_token_latency")]
    assert "mean 0.0031 s" in line
    assert "p50 ≤ 0.01 s" in line


def test_c82_no_observations_in_words() -> None:
    lines = describe(CounterDelta(1.0, queue_time=HistogramDelta(0, 0.0, ((1, 0), (INF, 0)))))
    assert "queue_time              n/a: no observations" in lines


def test_json_has_no_bare_nan_and_no_infinity() -> None:
    found = as_json(CounterDelta(0.0, queue_time=HistogramDelta(100, 50, ((1, 50), (2, 90), (INF, 100)))))
    text = json.dumps(found, allow_nan=False)
    read = json.loads(text, parse_constant=forbid)
    assert read["duration_s"] is None
    assert read["histograms"]["queue_time"]["quantile_estimates"]["p99"] == {"value": None, "lower": 2, "upper": None}


def test_the_command_prints_the_hand_checked_figures(captures: Path) -> None:
    folder = captures / "vllm-0.26.0-h200"
    result = run(
        str(folder / "ngram-metrics-c8-before.txt"),
        str(folder / "ngram-metrics-c8-after.txt"),
        "--seconds",
        "4",
        "--json",
    )
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["figures"]["output_tokens_per_s"]["value"] == pytest.approx(9123 / 4)
    assert found["figures"]["acceptance_rate"]["value"] == pytest.approx(5364 / 8377)
    assert found["requests_finished"]["length"] == 35


def test_the_command_reads_gzip_and_speaks_of_missing_speculation(captures: Path, tmp_path: Path) -> None:
    raw = (captures / "vllm-0.32.0-cpu-baseline" / "metrics-after.txt").read_bytes()
    packed = tmp_path / "scrape.gz"
    packed.write_bytes(gzip.compress(raw))
    result = run(str(packed), str(packed))
    assert result.exit_code == 0
    assert "drafts                  n/a" in result.stdout
    assert "generation_tokens       0 tokens" in result.stdout


def test_c73_the_command_ends_with_1_on_a_reset(captures: Path) -> None:
    folder = captures / "vllm-0.32.0-cpu-ngram"
    result = run(str(folder / "metrics-after.txt"), str(folder / "metrics-before.txt"))
    assert result.exit_code == 1
    assert "reset" in result.stdout


@pytest.mark.parametrize("arguments", [("missing.txt", "missing.txt"), ("a", "b", "--seconds", "0")])
def test_wrong_input_is_one_sentence(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, UsageError)


def test_every_capture_pair_gives_all_lines(capture: Callable[[str], Snapshot]) -> None:
    for name in ("baseline", "draft-k3", "dynamic", "ngram", "suffix"):
        folder = f"vllm-0.26.0-h200/{name}-metrics-c8"
        found = delta(capture(f"{folder}-before.txt"), capture(f"{folder}-after.txt"), 4.0)
        lines = describe(found)
        assert not any(line.startswith("warning") for line in lines)
        assert json.dumps(as_json(found), allow_nan=False)
        assert (found.drafts is None) == (name == "baseline")
    assert describe(delta(parse(""), parse(""), 1.0))[-1].startswith("warning")
