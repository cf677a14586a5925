"""Builds, starts and reads the mock server."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("mock_server.c")
STOP_S = 10.0


@dataclass(frozen=True)
class Truth:
    """One streamed request as the server saw it; times are seconds on CLOCK_MONOTONIC."""

    tag: str
    x_request_id: str
    received_s: float
    """The last byte of the request was read."""
    first_s: float
    """Just before the send of the first event with a token."""
    last_s: float
    events: int
    tokens: int
    blocked: int
    """Sends that the socket did not take at once: the client was slow to read."""
    aborted: bool
    times_s: tuple[float, ...] = ()
    """Just before each event's send; only if asked for."""

    @property
    def ttft_s(self) -> float:
        """What a client without delay would measure on a network without delay."""
        return self.first_s - self.received_s


@dataclass
class Server:
    """A running mock server. `truths()` may be called once it has ended."""

    url: str
    log: Path

    def truths(self) -> list[Truth]:
        """Every streamed request in the order of its arrival."""
        rows = (json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines())
        return sorted((_truth(row) for row in rows), key=lambda one: one.received_s)


def build(folder: Path) -> Path:
    """The server's binary, compiled if it is older than its source. Raises RuntimeError without a C compiler."""
    binary = folder / "mock_server"
    if binary.exists() and binary.stat().st_mtime >= SOURCE.stat().st_mtime:
        return binary
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise RuntimeError("The mock server needs a C compiler; on Debian and Ubuntu: apt-get install gcc libc6-dev.")
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f"mock_server.{os.getpid()}"
    subprocess.run([compiler, "-O2", "-Wall", "-Wextra", "-o", str(fresh), str(SOURCE)], check=True)
    fresh.replace(binary)
    return binary


@contextmanager
def serving(binary: Path, log: Path, pace_ms: float | None, core: int | None = None, *options: str) -> Iterator[Server]:
    """A server on a free port of 127.0.0.1, on one core; it has ended and its log is whole when the context is left."""
    pace = ["--saturated"] if pace_ms is None else ["--pace-ms", str(pace_ms)]
    process = subprocess.Popen(
        [str(binary), "--log", str(log), *pace, *options], stdout=subprocess.PIPE, text=True, encoding="ascii"
    )
    if core is not None:
        os.sched_setaffinity(process.pid, {core})
    try:
        assert process.stdout is not None
        word, _, port = process.stdout.readline().strip().partition(" ")
        if word != "listening":
            raise RuntimeError("The mock server did not start; its message stands above.")
        yield Server(f"http://127.0.0.1:{port}", log)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_S)
        if process.stdout is not None:
            process.stdout.close()


def _truth(row: dict[str, object]) -> Truth:
    def ns(name: str) -> float:
        return float(str(row[name])) / 1e9

    times = row.get("times_ns")
    return Truth(
        tag=str(row["tag"]),
        x_request_id=str(row["x_request_id"]),
        received_s=ns("received_ns"),
        first_s=ns("first_ns"),
        last_s=ns("last_ns"),
        events=int(str(row["events"])),
        tokens=int(str(row["tokens"])),
        blocked=int(str(row["blocked"])),
        aborted=row["aborted"] is True,
        times_s=tuple(one / 1e9 for one in times) if isinstance(times, list) else (),
    )
