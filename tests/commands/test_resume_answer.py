"""Ctrl-C in each phase of an answer, on the simulator's engine: the command that is told finishes the job."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loadgen.commands.conclude import find_verification
from loadgen.commands.verify_run import verify_command
from loadgen.commands.verify_setup import VerifyRequest
from loadgen.errors import ExitCode, UsageError
from loadgen.store.folder import RunFolder, create_run, find_run
from loadgen.sweep.verify import FILE

ROOT = Path(__file__).resolve().parents[2]
ASKED = (
    *("answer", "--engine", "simulator", "--quick", "--levels", "1,2", "--repeats", "1", "--k", "4"),
    *("--no-schedule-costs", "--window", "0.4", "--max-tokens", "24", "--margin", "0.1"),
)
GENEROUS_S = 60.0


# On a stalled machine the checks rightly void cells of a tenth of a second, and then there is nothing to verify.
LENIENT = "from loadgen.analysis import checks; checks.CELL_CHECKS = (); from loadgen.cli import main; main()"


def begin(*arguments: str) -> subprocess.Popen[str]:
    """`loadgen` as a user starts it, in a terminal's group of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", LENIENT, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )


def stopped_when(process: subprocess.Popen[str], fact: Callable[[], bool]) -> tuple[int, str]:
    """SIGINT once the fact holds; (exit code, standard error)."""
    deadline = time.monotonic() + GENEROUS_S
    while not fact() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=GENEROUS_S)
    return process.returncode, told


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def going_on(told: str) -> list[str]:
    """The arguments of the command that the last line tells."""
    found = re.search(r"Interrupted: loadgen (.+) goes on\.", told.splitlines()[-1])
    assert found, told
    return shlex.split(found[1])


@pytest.mark.faults
def test_an_answer_stopped_in_each_phase_is_finished_by_the_command_it_tells(tmp_path: Path) -> None:
    def cells(pattern: str) -> list[str]:
        return [line for path in sorted(tmp_path.glob(pattern)) for line in lines(path)]

    code, told = stopped_when(begin(*ASKED, "--runs", str(tmp_path)), lambda: bool(cells("*/cells.jsonl")))
    assert code == ExitCode.INTERRUPTED, told
    (run,) = (path.parent for path in tmp_path.glob("*/manifest.json"))
    assert going_on(told) == ["answer", "--resume", str(run)]
    swept = cells("*/cells.jsonl")
    assert swept

    code, told = stopped_when(begin(*going_on(told)), lambda: bool(cells("*/verify/cells.jsonl")))
    assert code == ExitCode.INTERRUPTED, told
    assert going_on(told) == ["answer", "--resume", str(run)]
    assert cells("*/cells.jsonl")[: len(swept)] == swept
    assert len(cells("*/cells.jsonl")) == 4
    half = cells("*/verify/cells.jsonl")
    assert "a verification was begun and is not complete" in (run / "report.md").read_text()

    last = begin(*going_on(told))
    shown, told = last.communicate(timeout=GENEROUS_S)
    assert last.returncode in (ExitCode.ANSWER, ExitCode.FINDINGS, ExitCode.NO_VERDICT), told
    assert "Measured again" in shown
    assert cells("*/verify/cells.jsonl")[: len(half)] == half
    keys = [json.dumps(json.loads(line)["key"], sort_keys=True) for line in cells("*/verify/cells.jsonl")]
    assert len(keys) == len(set(keys))
    verification = find_verification(RunFolder(run))
    assert verification is not None
    assert verification.margin == 0.1
    assert not (run / "verify-1").exists()


def test_a_verification_that_goes_on_measures_only_what_is_missing(
    in_process: Any, answered_run: Callable[..., RunFolder], tmp_path: Path
) -> None:
    folder = answered_run(tmp_path)
    own = folder.path / "verify"
    whole = lines(own / "cells.jsonl")
    first = json.loads((own / "verification.json").read_bytes())
    (own / "cells.jsonl").write_text("\n".join(whole[:-1]) + "\n", encoding="utf-8")
    (own / "verification.json").unlink()
    in_process.started.clear()

    verify_command(folder, VerifyRequest(), resumed=True, as_json=True)

    missing = json.loads(whole[-1])["key"]
    assert in_process.started == [missing["profile"]]
    assert lines(own / "cells.jsonl")[:-1] == whole[:-1]
    assert json.loads(lines(own / "cells.jsonl")[-1])["key"] == missing
    second = json.loads((own / "verification.json").read_bytes())
    assert [one["place"] for one in second["comparisons"]] == [one["place"] for one in first["comparisons"]]
    assert (second["margin"], second["margin_reason"]) == (first["margin"], first["margin_reason"])

    # Whole already: no server is started, and the same is said.
    in_process.started.clear()
    verify_command(folder, VerifyRequest(), resumed=True, as_json=True)
    assert in_process.started == []
    assert json.loads((own / "verification.json").read_bytes()) == second
    assert not (own / FILE).exists()


def test_what_cannot_go_on_is_said(in_process: Any, answered_run: Callable[..., RunFolder], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"No verification of .* was begun"):
        verify_command(create_run("bare", tmp_path), VerifyRequest(), resumed=True, as_json=True)
    folder = answered_run(tmp_path / "runs")
    with pytest.raises(UsageError, match="leave the other options out"):
        verify_command(folder, VerifyRequest(margin=0.1), resumed=True, as_json=True)
    manifest = json.loads((folder.path / "verify" / "manifest.json").read_bytes())
    del manifest["settings"]["margin_reason"]
    (folder.path / "verify" / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(UsageError, match="was begun by another version of loadgen"):
        verify_command(find_run(str(folder.path), tmp_path), VerifyRequest(), resumed=True, as_json=True)
