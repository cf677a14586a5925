"""A service on a real socket, and run folders as sweeps leave them."""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from loadgen.service.asked import prepare, read_body
from loadgen.service.model import SweepBody
from loadgen.service.server import make_server
from loadgen.service.settings import Settings
from loadgen.service.state import sweep_pid
from loadgen.store.folder import RunFolder

FAKE = (sys.executable, str(Path(__file__).with_name("fake_sweep.py")), "sweep")
BODY = SweepBody(workloads=["chat"], levels=[1, 4], repeats=1, window_s=0.2, engine="simulator")


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Path]:
    """An empty runs folder; fake sweeps that a test leaves there are ended."""
    folder = tmp_path / "runs"
    folder.mkdir()
    yield folder
    for run in folder.iterdir():
        pid = sweep_pid(run) if run.is_dir() and not run.is_symlink() else None
        if pid is not None and pid != os.getpid():
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def settings(runs: Path) -> Settings:
    return Settings(runs=runs, sweep=FAKE, stop_s=5.0)


MakeRun = Callable[..., RunFolder]


@pytest.fixture
def make_run(settings: Settings) -> MakeRun:
    """A run that was asked for: `make_run(gpu=0)` changes the body, `events=("queued", …)` adds events."""

    def make(events: tuple[str, ...] = (), **changes: object) -> RunFolder:
        asked = read_body(SweepBody.model_validate(BODY.model_dump() | changes), settings)
        folder = prepare(asked, settings.runs)
        for kind in events:
            folder.append_event(kind, kind)
        folder.close()
        return folder

    return make


Serve = Callable[..., httpx2.Client]


@contextmanager
def _served(settings: Settings) -> Iterator[str]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        server = make_server(settings)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started and thread.is_alive():
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture
def services() -> Iterator[ExitStack]:
    """What `serve` started; closing it stops all of it."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def serve(settings: Settings, services: ExitStack) -> Serve:
    """Starts a service with changed settings: `serve(token=…)` gives a client of it."""

    def start(**changes: object) -> httpx2.Client:
        client = services.enter_context(httpx2.Client(timeout=60))
        url = services.enter_context(_served(replace(settings, **changes)))  # type: ignore[arg-type]  # any field
        client.base_url = url
        return client

    return start


Until = Callable[[Callable[[], bool]], None]


@pytest.fixture
def until() -> Until:
    """Waits for something that another process does."""

    def wait(true: Callable[[], bool]) -> None:
        for _ in range(1500):
            if true():
                return
            time.sleep(0.02)
        raise AssertionError("it never came")

    return wait
