"""`loadgen serve` as a process: what it refuses, and that SIGKILL loses nothing."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest

from loadgen.errors import UsageError
from loadgen.service.settings import check_token, is_loopback
from loadgen.store.folder import RunFolder

COMMAND = (sys.executable, "-m", "loadgen", "serve", "--port", "0")
Until = Callable[[Callable[[], bool]], None]


@contextmanager
def served(runs: Path, *more: str) -> Iterator[tuple[subprocess.Popen[str], httpx2.Client]]:
    environment = {name: value for name, value in os.environ.items() if name != "LOADGEN_TOKEN"}
    process = subprocess.Popen(
        [*COMMAND, "--runs", str(runs), *more], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    with ExitStack() as stack:
        stack.callback(process.stdout.close)
        stack.callback(process.wait)
        stack.callback(process.terminate)
        found = re.search(r"http://[\d.]+:\d+", process.stdout.readline())
        assert found is not None
        yield process, stack.enter_context(httpx2.Client(base_url=found[0], timeout=60))


def test_a_killed_service_loses_nothing(runs: Path, until: Until) -> None:
    # A real sweep on the simulator: its cells stand once, whoever measured them.
    body = {"workloads": ["chat"], "levels": [1], "repeats": 2, "window_s": 0.2, "max_tokens": 8, "engine": "simulator"}
    with served(runs) as (process, client):
        run = client.post("/api/runs", json=body).json()["run"]
        waiting = client.post("/api/runs", json=body | {"repeats": 1}).json()["run"]
        until(lambda: client.get(f"/api/runs/{run}").json()["cells"] >= 1)
        process.send_signal(signal.SIGKILL)
        process.wait()
    with served(runs) as (_, client):
        until(lambda: all(client.get(f"/api/runs/{name}").json()["state"] == "completed" for name in (run, waiting)))
        row = client.get(f"/api/runs/{run}").json()
        assert row["cells"] == row["cells_planned"] == 4
        assert row["answer"].startswith("SIMULATED")
        assert client.get(f"/runs/{run}/report.html").status_code == 200
    keys = [cell.key for cell in RunFolder(runs / run).cells()]
    assert len(keys) == len(set(keys)) == 4


def test_one_service_per_runs_folder(runs: Path) -> None:
    with served(runs):
        second = subprocess.run([*COMMAND, "--runs", str(runs)], capture_output=True, text=True, check=False)
    assert second.returncode == 2
    assert "Another `loadgen serve` works on" in second.stderr
    assert "Traceback" not in second.stderr


def test_other_addresses_demand_a_token(runs: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "LOADGEN_TOKEN"}
    command = [*COMMAND, "--host", "0.0.0.0", "--runs", str(runs)]
    refused = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert refused.returncode == 2
    assert "set LOADGEN_TOKEN" in refused.stderr


def test_tokens_and_addresses_are_checked() -> None:
    assert is_loopback("127.0.0.1")
    assert is_loopback("::1")
    assert is_loopback("localhost")
    assert not is_loopback("0.0.0.0")
    assert check_token("127.0.0.1", None) is None
    assert check_token("127.0.0.1", "  ") is None
    assert check_token("0.0.0.0", "x" * 16) == "x" * 16
    for host, token in (("0.0.0.0", ""), ("127.0.0.1", "short"), ("127.0.0.1", "é" * 20)):
        with pytest.raises(UsageError):
            check_token(host, token)
    with pytest.raises(UsageError, match="no address"):
        is_loopback("no-such-host.invalid")
