"""`loadgen lossless` over real HTTP against the simulator, and what it refuses."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from loadgen.cli import app
from loadgen.engines.ports import free_port
from loadgen.errors import ServerError, UsageError

ROOT = Path(__file__).resolve().parents[2]
QUICK = ("lossless", "--engine", "simulator", "--temperature", "0", "--prompts", "4", "--max-tokens", "32")


def run(tmp_path: Path, *arguments: str) -> tuple[int, str, Path]:
    result = CliRunner().invoke(app, [*arguments, "--runs", str(tmp_path)], catch_exceptions=False)
    folders = list(tmp_path.glob("*-lossless-*"))
    assert len(folders) == 1
    return result.exit_code, result.stdout, folders[0] / "lossless"


def test_a_correct_simulated_server_has_the_same_quality(tmp_path: Path) -> None:
    code, out, folder = run(tmp_path, *QUICK, "--server-arg=--noise", "--server-arg=flips")

    assert code == 0
    assert out.startswith("SIMULATED: ngram against baseline: same quality at temperature 0")
    kept: dict[str, Any] = json.loads((folder / "result.json").read_text())
    assert kept["quality"] == "same quality"
    assert kept["simulated"] is True
    assert kept["greedy"]["drafted"]["accepted_tokens"] >= 100
    assert kept["servers"]["ngram"]["version"] == "0.32.0"
    asked = [json.loads(line) for line in (folder / "asked.jsonl").read_text().splitlines()]
    assert len([line for line in asked if line["phase"] == "0/baseline/reference"]) == 4
    assert [arm["concurrency"] for arm in kept["greedy"]["control"]] == [1, 32]


def test_a_planted_bug_is_found_over_http_and_in_the_samples(tmp_path: Path) -> None:
    bug = ("--server-arg=--bug", "--server-arg=bonus-shift")
    sampled = ("--temperature", "0,1", "--samples", "60", "--prefixes", "1")
    code, out, folder = run(tmp_path, *QUICK, *bug, *sampled, "--json")

    assert code == 1
    found = json.loads(out)
    assert found["quality"] == "differs"
    assert found["greedy"]["hard"]["count"] >= 2
    assert found["greedy"]["hard_divergences"][0]["in_chunk"] > 1
    assert "verifying drafts" in found["answer"]
    assert len(found["sampling"][0]["places"]) == 6
    assert found == json.loads((folder / "result.json").read_text())


@pytest.fixture
def urls(request: pytest.FixtureRequest) -> Iterator[str]:
    """Two simulators that know nothing of this run, as `--url` takes them; parameters go to the second one."""
    ports = {name: free_port() for name in ("baseline", "ngram")}
    more = {"ngram": getattr(request, "param", ())}
    with ExitStack() as stack:
        for name, port in ports.items():
            config = str(ROOT / "server_profiles" / f"{name}.yaml")
            command = [sys.executable, "-m", "loadgen", "simulate", "--config", config, "--port", str(port)]
            process = subprocess.Popen(
                [*command, *more.get(name, ())],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)
        yield ",".join(f"{name}=http://127.0.0.1:{port}" for name, port in ports.items())


def test_simulators_behind_urls_make_a_simulated_verdict(urls: str, tmp_path: Path) -> None:
    words = ("--temperature", "0", "--prompts", "4", "--max-tokens", "32")
    _, out, folder = run(tmp_path, "lossless", "--profile", "ngram", "--url", urls, *words)
    assert out.startswith("SIMULATED: ")
    assert json.loads((folder / "result.json").read_text())["simulated"] is True
    assert json.loads((folder / "request.json").read_text())["simulated"] is True
    assert "SIMULATED" in (folder.parent / "report.html").read_text()


@pytest.mark.parametrize("urls", [("--model", "other/Model")], indirect=True)
def test_two_models_are_refused_before_anything_is_asked(urls: str, tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="other/Model: two models"):
        run(tmp_path, "lossless", "--profile", "ngram", "--url", urls, "--temperature", "0", "--prompts", "2")
    assert not list(tmp_path.glob("*/lossless/asked.jsonl"))


@pytest.mark.parametrize("urls", [("--max-model-len", "2048", "--vllm-version", "0.26.0")], indirect=True)
def test_servers_that_differ_otherwise_are_told_in_the_result(urls: str, tmp_path: Path) -> None:
    words = ("--temperature", "0", "--prompts", "2", "--max-tokens", "16")
    _, out, folder = run(tmp_path, "lossless", "--profile", "ngram", "--url", urls, *words)
    assert "! the servers differ: vLLM is 0.26.0 for ngram and 0.32.0 for baseline" in out
    assert "! the servers differ: max_model_len is 2048 for ngram" in out
    assert len(json.loads((folder / "result.json").read_text())["server_differences"]) >= 2
    assert "The servers differ" in (folder.parent / "report.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--profile", "baseline-sync"), "does not speculate"),
        (("--profile", "cost-probe"), "synthetic"),
        (("--profile", "ngram,suffix"), "one by one"),
        (("--against", "suffix"), "speculates itself"),
        (("--workload", "chat,code-edit"), "one by one"),
        (("--dtype", "int3"), "known ones"),
        (("--margin", "2"), "out of range"),
    ],
)
def test_what_cannot_be_tested_is_refused_before_a_server_starts(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        CliRunner().invoke(app, [*QUICK, "--runs", str(tmp_path), *arguments], catch_exceptions=False)
    assert not list(tmp_path.iterdir())
