"""`2>&1 | head -3` while servers start: the run ends by itself, as for a closed terminal, and leaves no server."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from loadgen.errors import ExitCode

ROOT = Path(__file__).parents[2]
SMALL = ("--engine", "simulator", "--levels", "1", "--repeats", "1", "--workload", "code-edit")
COMMANDS = {
    "sweep": ("sweep", "--quick", *SMALL),
    "sweep-json": ("sweep", "--quick", "--json", *SMALL),
    "answer": ("answer", "--quick", "--k", "1,2", *SMALL),
    "lossless": ("lossless", "--engine", "simulator", "--prompts", "2", "--temperature", "0"),
}


def servers_of(folder: Path) -> list[str]:
    """Command lines of processes that name the folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(folder) in words and process.name != str(os.getpid()):
            found.append(words)
    return found


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("until", ["starting", "port"])
def test_a_run_whose_reader_leaves_while_servers_start_ends(name: str, until: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "loadgen", *COMMANDS[name], "--runs", str(tmp_path / "runs")]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT)
    try:
        assert run.stdout is not None
        for line in run.stdout:
            if until.encode() in line and b"server" in line:
                break
        run.stdout.close()
        assert run.wait(timeout=60) == ExitCode.INTERRUPTED
        assert servers_of(tmp_path) == []
    finally:
        run.kill()
        run.wait()
