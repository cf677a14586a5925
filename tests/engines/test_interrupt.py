"""Ctrl-C, a second Ctrl-C and SIGKILL of loadgen itself: no server is left."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("interrupted.py")
Until = Callable[[Callable[[], bool]], None]
Gone = Callable[[int], bool]


class Run:
    """A loadgen-like program with one server that ignores SIGINT and SIGTERM, and that server's child."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.pid_file = folder / "pids"
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), str(folder), "--pid-file", str(self.pid_file), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=PROGRAM.parents[2],
            env={"PYTHONPATH": str(PROGRAM.parents[2])},
        )

    def read_until(self, phase: str) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.split()[0] == phase:
                return
        pytest.fail(f"the program ended before {phase}")

    def pids(self) -> list[int]:
        return [int(text) for text in self.pid_file.read_text(encoding="utf-8").split()]


@pytest.fixture
def run_with(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def start(*arguments: str) -> Run:
        runs.append(Run(tmp_path, "--ignore-signals", "--grandchild", "own-session", *arguments))
        return runs[-1]

    yield start
    for run in runs:
        run.process.kill()
        run.process.communicate()


def test_c60_ctrl_c_while_a_server_starts(run_with: Callable[..., Run], until: Until, is_gone: Gone) -> None:
    run = run_with("--no-listen")
    run.read_until("starting")
    until(run.pid_file.exists)

    run.process.send_signal(signal.SIGINT)
    run.process.wait(timeout=60)

    assert len(run.pids()) == 2
    assert all(is_gone(pid) for pid in run.pids())


def test_a_second_ctrl_c_ends_loadgen_and_the_guard_ends_the_server(
    run_with: Callable[..., Run], until: Until, is_gone: Gone
) -> None:
    run = run_with()
    run.read_until("ready")

    run.process.send_signal(signal.SIGINT)
    run.process.send_signal(signal.SIGINT)
    run.process.wait(timeout=60)

    until(lambda: all(is_gone(pid) for pid in run.pids()))


@pytest.mark.parametrize("phase", ["starting", "ready"])
def test_sigkill_of_loadgen_leaves_no_server(
    run_with: Callable[..., Run], until: Until, is_gone: Gone, phase: str
) -> None:
    run = run_with("--no-listen") if phase == "starting" else run_with()
    run.read_until(phase)
    until(run.pid_file.exists)

    run.process.kill()
    run.process.wait(timeout=60)

    assert len(run.pids()) == 2
    until(lambda: all(is_gone(pid) for pid in run.pids()))
