"""A server's life as a real child process: start, readiness, misbehaviour, stop."""

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from loadgen.engines.base import Engine, EngineEvent, StartRequest
from loadgen.engines.managed import Launch, ManagedEngine
from loadgen.engines.ports import free_port
from loadgen.errors import ServerError

RequestFor = Callable[..., StartRequest]
Gone = Callable[[int], bool]


def pids_in(pid_file: Path) -> list[int]:
    """What the fake server wrote down: itself and its child; nothing before it runs."""
    return [int(text) for text in pid_file.read_text(encoding="utf-8").split()] if pid_file.exists() else []


async def eventually(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.02)
    pytest.fail("waited in vain")


def phases(events: list[EngineEvent]) -> list[str]:
    return [event.phase for event in events]


async def test_a_server_starts_answers_and_leaves_nothing(
    engine: ManagedEngine, request_for: RequestFor, events: list[EngineEvent], is_gone: Gone
) -> None:
    server = await engine.start(request_for(), events.append)

    assert (server.profile, server.model, server.max_model_len, server.version) == ("baseline", "fake", 512, "0.32.0")
    assert phases(events) == ["starting", "port", "health", "models", "completion", "ready"]
    assert await engine.check_alive(server) is None
    assert server.pid is not None

    await engine.stop(server, events.append)

    assert phases(events)[-2:] == ["stopping", "stopped"]
    assert [event.detail for event in events if event.phase == "stopping"] == ["", "SIGINT"]
    assert is_gone(server.pid)
    assert "stopped" in str(await engine.check_alive(server))
    await engine.stop(server, events.append)  # a second stop has nothing to do and says nothing
    assert phases(events)[-1] == "stopped"


async def test_the_engine_is_an_engine(engine: ManagedEngine) -> None:
    protocol: Engine = engine

    assert protocol.name == "fake"


async def test_c87_healthy_before_servable_is_not_ready(
    engine: ManagedEngine, request_for: RequestFor, events: list[EngineEvent]
) -> None:
    arguments = ("--models-after", "0.3", "--completions-after", "0.9", "--status", "500")

    server = await engine.start(request_for(*arguments), events.append)

    at = {event.phase: event.elapsed_s for event in events}
    assert at["health"] < at["models"] < at["completion"] <= server.start_s
    assert phases(events) == ["starting", "port", "health", "models", "completion", "ready"]


async def test_c88_a_server_that_exits_is_not_waited_for(
    engine: ManagedEngine, request_for: RequestFor, events: list[EngineEvent]
) -> None:
    with pytest.raises(ServerError) as caught:
        await engine.start(request_for("--exit-after", "0.1", timeout_s=600.0), events.append)

    text = str(caught.value)
    assert "The server of baseline ended with exit code 7 before it was ready" in text
    assert text.endswith("RuntimeError: no room for the KV cache")
    assert phases(events)[-1] == "stopped"


async def test_a_server_that_dies_at_its_first_request_is_told_by_its_last_words(
    engine: ManagedEngine, request_for: RequestFor, events: list[EngineEvent]
) -> None:
    with pytest.raises(ServerError, match=r"exit code 3 before it was ready[\s\S]*Synthetic acceptance"):
        await engine.start(request_for("--die-at-completion"), events.append)

    assert "completion" not in phases(events)


async def test_a_server_that_is_never_ready_is_ended_at_the_limit(
    engine: ManagedEngine, request_for: RequestFor, events: list[EngineEvent]
) -> None:
    with pytest.raises(ServerError, match=r"not ready after 0\.3 s \(phase port: ") as caught:
        await engine.start(request_for("--no-listen", timeout_s=0.3), events.append)

    assert "\n" not in str(caught.value).split("Last lines of its log:")[0].strip()
    assert phases(events)[-1] == "stopped"


async def test_a_command_that_does_not_exist_is_one_sentence(
    engine: ManagedEngine, request_for: RequestFor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(request: StartRequest, port: int) -> Launch:
        return Launch(("/no/such/program",), {})

    monkeypatch.setattr(engine, "prepare", gone)
    with pytest.raises(ServerError, match=r"/no/such/program cannot be run \(No such file or directory\)"):
        await engine.start(request_for(), lambda event: None)


@pytest.mark.parametrize("where", ["plain", "own-session"])
async def test_what_ignores_signals_and_what_left_the_group_is_ended_too(
    engine: ManagedEngine,
    request_for: RequestFor,
    where: str,
    pid_file: Path,
    is_gone: Gone,
    events: list[EngineEvent],
) -> None:
    request = request_for("--ignore-signals", "--grandchild", where, "--pid-file", str(pid_file))
    server = await engine.start(request, events.append)
    pids = pids_in(pid_file)

    await engine.stop(server, events.append)

    assert len(pids) == 2
    assert all(is_gone(pid) for pid in pids)
    details = [event.detail for event in events if event.phase == "stopping"]
    assert details == ["", "SIGINT", "SIGTERM", "SIGKILL"]


async def test_children_of_a_server_that_died_are_ended(
    engine: ManagedEngine, request_for: RequestFor, pid_file: Path, is_gone: Gone
) -> None:
    request = request_for("--exit-after", "0", "--grandchild", "own-session", "--pid-file", str(pid_file))

    with pytest.raises(ServerError, match="exit code 7"):
        await engine.start(request, lambda event: None)

    assert all(is_gone(pid) for pid in pids_in(pid_file))


async def test_a_dead_server_is_noticed_with_its_last_words(engine: ManagedEngine, request_for: RequestFor) -> None:
    server = await engine.start(request_for(), lambda event: None)
    assert server.pid is not None

    os.kill(server.pid, signal.SIGKILL)
    await engine._children[server.url].exited()

    sentence = await engine.check_alive(server)
    assert sentence is not None
    assert "The server of baseline was ended by SIGKILL (out of memory?" in sentence
    assert "arguments:" in sentence
    await engine.stop(server, lambda event: None)


async def test_cancelling_a_start_leaves_nothing(
    engine: ManagedEngine, request_for: RequestFor, pid_file: Path, is_gone: Gone
) -> None:
    request = request_for("--no-listen", "--grandchild", "plain", "--pid-file", str(pid_file))
    task = asyncio.create_task(engine.start(request, lambda event: None))
    await eventually(lambda: bool(pids_in(pid_file)))
    pids = pids_in(pid_file)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert all(is_gone(pid) for pid in pids)


async def test_a_start_cancelled_at_any_moment_leaves_nothing(
    engine: ManagedEngine, request_for: RequestFor, pid_file: Path, is_gone: Gone
) -> None:
    for turns in range(6):
        request = request_for("--no-listen", "--pid-file", str(pid_file))
        task = asyncio.create_task(engine.start(request, lambda event: None))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert all(is_gone(pid) for pid in pids_in(pid_file))


async def test_close_ends_what_still_runs(engine: ManagedEngine, request_for: RequestFor, is_gone: Gone) -> None:
    servers = [await engine.start(request_for(name=name), lambda event: None) for name in ("a", "b")]

    await engine.close()

    assert all(server.pid is not None and is_gone(server.pid) for server in servers)


async def test_the_environment_is_given_and_the_log_kept(
    engine: ManagedEngine, request_for: RequestFor, tmp_path: Path
) -> None:
    for _ in range(2):
        await engine.stop(await engine.start(request_for("--word", "x y"), lambda event: None), lambda event: None)

    log = (tmp_path / "servers" / "baseline.log").read_text(encoding="utf-8")
    assert log.count("environment: as given") == 2  # a second start adds to the log
    assert "'--word', 'x y'" in log


async def test_c95_a_taken_port_says_who_holds_it(request_for: RequestFor, engine: ManagedEngine) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        engine._port = holder.getsockname()[1]
        with pytest.raises(ServerError, match=rf"is taken by .* \(pid {os.getpid()}\)"):
            await engine.start(request_for(), lambda event: None)
    engine._port = free_port()
    server = await engine.start(request_for(), lambda event: None)
    assert server.url.endswith(f":{engine._port}")


async def test_a_slow_start_is_reported_now_and_then(
    engine: ManagedEngine, request_for: RequestFor, events: list[EngineEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loadgen.engines.readiness.REPORT_S", 0.1)

    await engine.start(request_for("--completions-after", "0.6"), events.append)

    waiting = [event.detail for event in events if event.phase == "waiting"]
    assert len(waiting) >= 2
    log = "completion: /v1/completions says 503 still loading; its log: arguments: ["
    assert any(log in line for line in waiting), waiting
