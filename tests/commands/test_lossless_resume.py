"""A real Ctrl-C in `loadgen lossless`, and what `--resume` and `loadgen report` make of the folder."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from loadgen.cli import app
from loadgen.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 120.0
COMMAND = (sys.executable, "-m", "loadgen", "lossless", "--engine", "simulator", "--prompts", "4", "--max-tokens", "32")
SAMPLED = ("--temperature", "0,1", "--samples", "150", "--prefixes", "1", "--margin", "0.3")


def asked(runs: Path) -> list[dict[str, Any]]:
    """The lines of the one run's asked.jsonl that are whole."""
    paths = list(runs.glob("*/lossless/asked.jsonl"))
    lines = paths[0].read_bytes().split(b"\n")[:-1] if paths else []
    return [json.loads(line) for line in lines]


@pytest.mark.faults
def test_an_interrupted_test_goes_on_without_asking_again(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, *SAMPLED, "--runs", str(tmp_path)],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        until = time.monotonic() + LIMIT_S
        while not any(line["phase"].startswith("0/ngram/") for line in asked(tmp_path)):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
    folder = next(tmp_path.glob("*-lossless-ngram"))

    assert process.returncode == 130
    assert f"Interrupted: loadgen lossless --resume {folder} goes on." in said
    assert "Traceback" not in said
    assert said.count("stopped") == 2  # both servers
    before = asked(tmp_path)
    with pytest.raises(UsageError, match="no result yet"):
        CliRunner().invoke(app, ["report", str(folder)], catch_exceptions=False)

    done = CliRunner().invoke(app, ["lossless", "--resume", "latest", "--runs", str(tmp_path)], catch_exceptions=False)

    assert done.exit_code == 0, done.output
    after = asked(tmp_path)
    assert after[: len(before)] == before
    assert len({(line["phase"], line["index"]) for line in after}) == len(after)
    result = json.loads((folder / "lossless/result.json").read_text())
    assert (result["quality"], result["greedy"]["drafted"]["at_least"]) == ("same quality", False)
    reports_are_written_again(folder, result)
    the_run_is_listed_and_no_sweep(folder)


def the_run_is_listed_and_no_sweep(folder: Path) -> None:
    """`loadgen runs` shows it; what needs cells says why it does not take it."""
    listed = CliRunner().invoke(app, ["runs", "--runs", str(folder.parent)], catch_exceptions=False).stdout
    assert (
        listed == f"{folder.name}  simulator SIMULATED  lossless: ngram against baseline on code-edit: same quality\n"
    )
    with pytest.raises(UsageError, match="a run of loadgen lossless, which has no cells"):
        CliRunner().invoke(app, ["analyse", str(folder)], catch_exceptions=False)


def reports_are_written_again(folder: Path, result: dict[str, Any]) -> None:
    """By `loadgen report`, and a resume of a complete test needs no server."""
    page = (folder / "report.html").read_text()
    (folder / "report.html").unlink()
    shown = CliRunner().invoke(app, ["report", "latest", "--runs", str(folder.parent)], catch_exceptions=False)
    assert shown.stdout.split() == [str(folder / "report.html"), str(folder / "report.md")]
    assert (folder / "report.html").read_text() == page
    lines = len(asked(folder.parent))
    again = CliRunner().invoke(app, ["lossless", "--resume", str(folder), "--json"], catch_exceptions=False)
    assert json.loads(again.stdout) == result
    assert len(asked(folder.parent)) == lines


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("lossless", "--resume", "no-such-run"), "no run of loadgen lossless"),
        (("lossless", "--seeds", "maybe"), "known ones are auto, on, off"),
    ],
)
def test_what_means_nothing_is_refused(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        CliRunner().invoke(app, [*arguments, "--runs", str(tmp_path)], catch_exceptions=False)
    assert not list(tmp_path.iterdir())
