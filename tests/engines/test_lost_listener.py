"""A listener that fails, and a user who asks twice: no server outlives either."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from loadgen.engines.base import EngineEvent, StartRequest
from loadgen.engines.child import ChildProcess, Graces
from loadgen.engines.managed import ManagedEngine

RequestFor = Callable[..., StartRequest]
Gone = Callable[[int], bool]
LONG = Graces(sigint_s=600.0, sigterm_s=600.0, sigkill_s=30.0)


@pytest.mark.parametrize("fault", [BrokenPipeError, SystemExit])
async def test_a_lost_terminal_neither_breaks_a_start_nor_a_stop(
    engine: ManagedEngine, request_for: RequestFor, is_gone: Gone, fault: type[BaseException]
) -> None:
    def listener(event: EngineEvent) -> None:
        raise fault

    server = await engine.start(request_for(), listener)
    assert server.pid is not None
    await engine.stop(server, listener)
    assert is_gone(server.pid)


@pytest.fixture
def stubborn(fake_server: Path, tmp_path: Path, pid_file: Path) -> ChildProcess:
    """A server that takes no polite signal, with a child in a session of its own."""
    words = ("--port", "0", "--ignore-signals", "--grandchild", "own-session", "--pid-file", str(pid_file))
    command = (sys.executable, str(fake_server), *words, "--no-listen")
    return ChildProcess(command, environment={}, log_path=tmp_path / "log", graces=LONG)


def pids_in(pid_file: Path) -> list[int]:
    return [int(text) for text in pid_file.read_text(encoding="utf-8").split()] if pid_file.exists() else []


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - another process makes it true
            await asyncio.sleep(0.02)


async def test_hurry_ends_at_once_what_ignores_every_polite_signal(
    stubborn: ChildProcess, pid_file: Path, is_gone: Gone
) -> None:
    await stubborn.launch()
    await eventually(lambda: len(pids_in(pid_file)) == 2)
    signals: list[str] = []
    stop = asyncio.create_task(stubborn.stop(signals.append))
    await eventually(lambda: bool(signals))

    stubborn.hurry()
    await asyncio.wait_for(stop, 60)

    assert signals == ["SIGINT", "SIGKILL"]
    assert all(is_gone(pid) for pid in pids_in(pid_file))


async def test_hurry_alone_ends_a_server_that_was_not_asked_to_stop(stubborn: ChildProcess, pid_file: Path) -> None:
    await stubborn.launch()
    await eventually(lambda: len(pids_in(pid_file)) == 2)
    stubborn.hurry()
    await asyncio.wait_for(stubborn.stop(), 60)
    assert stubborn.returncode == -9


@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_a_launch_that_is_cancelled_at_any_step_can_be_stopped(kind: str, stubborn: ChildProcess) -> None:
    async def cancelled_after(steps: int) -> None:
        child = ChildProcess(stubborn.command, environment={}, log_path=stubborn.log_path, graces=Graces(0.1, 0.1, 30))
        launch = asyncio.create_task(child.launch())
        for _ in range(steps):
            await asyncio.sleep(0)
        launch.cancel()
        await asyncio.gather(launch, return_exceptions=True)
        await asyncio.wait_for(child.stop(), 60)
        if child.pid is not None:
            with pytest.raises(ProcessLookupError):
                os.killpg(child.pid, 0)

    async def run() -> None:
        await asyncio.gather(*(cancelled_after(steps) for steps in range(8)))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop if kind == "uvloop" else None) as runner:
        runner.run(run())
