"""An engine whose servers are simulators in this process: real sockets, no second process to wait for."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loadgen.analysis import checks
from loadgen.commands import answer_run, sweep_run, verify_setup
from loadgen.commands.sweep_setup import SweepRequest
from loadgen.engines.base import EngineListener, ReadyServer, StartRequest
from loadgen.engines.choose import EngineRequest
from loadgen.simulator.launch import LaunchOptions, launch
from loadgen.simulator.server import SimulatorServer
from loadgen.store.folder import RunFolder, find_run


class InProcessEngine:
    """The `Engine` protocol over `SimulatorServer`."""

    name = "simulator"
    simulated = True
    can_run_together = True

    def __init__(self) -> None:
        self.started: list[str] = []
        self._servers: dict[str, SimulatorServer] = {}

    async def start(self, request: StartRequest, listener: EngineListener) -> ReadyServer:
        parts = launch(request.profile, LaunchOptions(noise="off"))
        server = SimulatorServer(parts.core, parts.times, parts.answers, parts.spec, None)
        url = f"http://127.0.0.1:{await server.start('127.0.0.1', 0)}"
        self._servers[url] = server
        self.started.append(request.profile.name)
        effective = {"graph_mode": parts.core.config.graph_mode, "overrides": list(parts.core.config.notes)}
        return ReadyServer(request.profile.name, url, parts.spec.model_id, 4096, "0.32.0", 0.1, effective=effective)

    async def stop(self, server: ReadyServer, listener: EngineListener) -> None:
        await self._servers.pop(server.url).stop()

    async def check_alive(self, server: ReadyServer) -> str | None:
        return None

    async def close(self) -> None:
        await asyncio.gather(*(server.stop() for server in self._servers.values()))


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> InProcessEngine:
    """Every command of an answer gets this engine."""
    engine = InProcessEngine()

    def choose(wanted: EngineRequest, machine: Any = None) -> tuple[InProcessEngine, str]:
        return engine, "in process, for a test."

    chooser: Callable[..., Any] = choose
    for module in (answer_run, sweep_run, verify_setup):
        monkeypatch.setattr(module, "choose_engine", chooser)
    # Client and servers share this process, and the machine is busy with other tests: no cell may fall to that.
    monkeypatch.setattr(checks, "CELL_CHECKS", ())
    return engine


@pytest.fixture
def answered_run() -> Callable[[Path], RunFolder]:
    """Makes a run with its verification, as small as one can be."""

    def make(runs: Path) -> RunFolder:
        asked = SweepRequest(
            workload="code-edit",
            levels="1",
            k="4",
            repeats=1,
            window_s=0.2,
            max_tokens=24,
            quick=True,
            schedule_costs=False,
        )
        answer_run.answer(answer_run.AnswerRequest(asked, EngineRequest(name="simulator")), runs, as_json=True)
        return find_run("latest", runs)

    return make
