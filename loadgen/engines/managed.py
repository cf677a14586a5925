"""What the engines that start child processes share: start, readiness, watching, stop."""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from loadgen.clock import now_s
from loadgen.engines.base import EngineEvent, EngineListener, ReadyServer, StartRequest
from loadgen.engines.child import ChildProcess, Graces
from loadgen.engines.credentials import without_secrets
from loadgen.engines.effective import effective_from_log
from loadgen.engines.ports import HOST, free_port, is_free, port_holder
from loadgen.engines.readiness import Prober, Readiness
from loadgen.errors import ServerError

_LINE_LIMIT = 160


@dataclass(frozen=True)
class Launch:
    """How one server starts."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    """The whole environment, secrets included: it goes to the server alone."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """For our own requests to the server."""
    remark: str = ""
    """What is added to the user's own settings, and why."""
    warnings: tuple[str, ...] = ()
    """What the preflight says of this profile on this very server."""
    shown: tuple[str, ...] = ()
    """What stands for the command in progress and in the run folder, where the command itself is a wrapper."""


class ManagedEngine(ABC):
    """An engine whose servers are children of loadgen. Implements the `Engine` protocol but for the launch itself."""

    name: str
    simulated: bool
    can_run_together: bool

    def __init__(self, *, port: int | None = None, graces: Graces | None = None) -> None:
        self._port = port
        self._graces = graces or Graces()
        self._children: dict[str, ChildProcess] = {}
        """URL → its server, from the launch on: also those that are not ready yet."""

    @abstractmethod
    async def prepare(self, request: StartRequest, port: int) -> Launch:
        """The server's command for this port; UsageError or ServerError if it could not run."""

    def effective(self, log: str, launch: Launch) -> dict[str, Any]:
        """What the server really runs with, as its log tells."""
        return effective_from_log(log, launch.environment)

    async def released(self, request_name: str, listener: EngineListener) -> None:
        """Waits until what the stopped server held is free; nothing to wait for unless an engine says so."""
        del request_name, listener

    async def start(self, request: StartRequest, listener: EngineListener) -> ReadyServer:
        """A server that has answered one completion; ServerError with the log's last lines if it cannot."""
        began = now_s()
        name = request.profile.name
        listener = _steady(listener)

        def report(phase: str, detail: str) -> None:
            if phase == "waiting" and (line := child.log_tail(1)):
                detail = f"{detail}; its log: {line[:_LINE_LIMIT]}"
            listener(EngineEvent(name, phase, now_s() - began, detail))

        port = self._choose_port()
        url = f"http://{HOST}:{port}"
        launch = await self.prepare(request, port)
        child = ChildProcess(
            launch.command, environment=launch.environment, log_path=request.log_path, graces=self._graces
        )
        self._children[url] = child
        shown = without_secrets(launch.shown or launch.command)
        try:
            report("starting", "; ".join(part for part in (" ".join(shown), launch.remark) if part))
            for warning in launch.warnings:
                report("starting", warning)
            await child.launch()
            prober = Prober(url, headers=launch.headers, timeout_s=request.start_timeout_s, report=report)
            ready = await self._ready_or_ended(child, prober, request)
            report("ready", f"{ready.model}, vLLM {ready.version or 'of unknown version'}")
            return ReadyServer(
                profile=name,
                url=url,
                model=ready.model,
                max_model_len=ready.max_model_len,
                version=ready.version,
                start_s=now_s() - began,
                command=shown,
                pid=child.pid,
                # What the server says now is later than its log.
                effective={**self.effective(child.new_log(), launch), **ready.effective},
            )
        except BaseException:
            await self._end(url, name, listener)
            raise

    async def stop(self, server: ReadyServer, listener: EngineListener) -> None:
        """Nothing of the server is left; raises nothing for a dead one."""
        await self._end(server.url, server.profile, _steady(listener))

    async def check_alive(self, server: ReadyServer) -> str | None:
        """None while the server's process runs; else how it ended, with its last words."""
        child = self._children.get(server.url)
        if child is None:
            return f"The server of {server.profile} was stopped."
        ending = child.ending()
        return None if ending is None else f"The server of {server.profile} {ending}.{_last_words(child)}"

    async def close(self) -> None:
        """Ends whatever still runs."""
        await asyncio.gather(*(self._end(url, "", _ignore) for url in tuple(self._children)))

    def hurry(self) -> None:
        """Every server gets SIGKILL at once, with all it started: for who asks a second time to end."""
        for child in tuple(self._children.values()):
            child.hurry()

    async def _ready_or_ended(self, child: ChildProcess, prober: Prober, request: StartRequest) -> Readiness:
        """Whichever comes first: a server that dies is not waited for (case C88)."""
        probing = asyncio.create_task(prober.until_ready())
        ending = asyncio.create_task(child.exited())
        try:
            await asyncio.wait((probing, ending), return_when=asyncio.FIRST_COMPLETED)
            if ending.done() and not (probing.done() and probing.exception() is None):
                raise ServerError(
                    f"The server of {request.profile.name} {child.ending()} before it was ready; its log is "
                    f"{request.log_path}.{_last_words(child)}"
                )
            return await probing
        except ServerError as error:
            if child.returncode is None:
                raise ServerError(f"{error}{_last_words(child)}") from None
            raise
        finally:
            for task in (probing, ending):
                task.cancel()
            await asyncio.gather(probing, ending, return_exceptions=True)

    async def _end(self, url: str, name: str, listener: EngineListener) -> None:
        child = self._children.get(url)
        if child is None:
            return
        began = now_s()
        listener(EngineEvent(name, "stopping", 0.0))
        await child.stop(lambda signal: listener(EngineEvent(name, "stopping", now_s() - began, signal)))
        # Only now: if the stop is cancelled, `close` must still find the child.
        self._children.pop(url, None)
        await self.released(name, listener)
        listener(EngineEvent(name, "stopped", now_s() - began))

    def _choose_port(self) -> int:
        if self._port is None:
            return free_port()
        if not is_free(self._port):
            raise ServerError(
                f"Port {self._port} is taken by {port_holder(self._port)}; stop it, or choose another port."
            )
        return self._port


def _last_words(child: ChildProcess) -> str:
    tail = child.log_tail()
    return f"\nLast lines of its log:\n{tail}" if tail else " It wrote nothing to its log."


def _steady(listener: EngineListener) -> EngineListener:
    """The listener without the errors of a lost terminal: a server must be stopped whoever listens."""

    def tell(event: EngineEvent) -> None:
        with contextlib.suppress(OSError, SystemExit):
            listener(event)

    return tell


def _ignore(event: EngineEvent) -> None:
    del event
