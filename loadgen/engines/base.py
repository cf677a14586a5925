"""The engine protocol: what turns a profile into a server that answers, and ends it again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from loadgen.profiles.model import ServerProfile


@dataclass(frozen=True)
class StartRequest:
    """What an engine needs to start one server."""

    profile: ServerProfile
    config_path: Path
    """The profile's file as it will be started (already written into the run folder's `profiles/`)."""
    log_path: Path
    """Where the server's own output goes (the run folder's `servers/`)."""
    model: str | None = None
    extra_args: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    start_timeout_s: float = 600.0
    together: bool = False
    """Other servers of the same run are up meanwhile."""


@dataclass(frozen=True)
class EngineEvent:
    """One line of progress while a server starts or stops."""

    profile: str
    phase: str
    """`starting`, `port`, `health`, `models`, `completion`, `ready`, `waiting`, `stopping`, `stopped`."""
    elapsed_s: float
    detail: str = ""


@dataclass(frozen=True)
class ReadyServer:
    """A server that has answered a real completion."""

    profile: str
    url: str
    """Base URL without a trailing slash and without `/v1`."""
    model: str
    """The served model id, as `/v1/models` gives it."""
    max_model_len: int | None
    version: str | None
    """What `/version` says; None if the server has no such route."""
    start_s: float
    """Seconds from the start to the first real completion."""
    command: tuple[str, ...] = ()
    pid: int | None = None
    effective: Mapping[str, Any] = field(default_factory=dict)
    """What the server really runs with, as its log or `/server_info` tells: graph mode, async scheduling, runner, …"""


EngineListener = Callable[[EngineEvent], None]


class Engine(Protocol):
    """Starts and stops servers. Cancelling `start` leaves nothing running."""

    name: str
    simulated: bool
    can_run_together: bool
    """True if two of its servers can be up at once without sharing what is measured (the partner idle)."""

    async def start(self, request: StartRequest, listener: EngineListener) -> ReadyServer:
        """A server that has answered one completion; raises ServerError with the log's last lines if it cannot."""

    async def stop(self, server: ReadyServer, listener: EngineListener) -> None:
        """Nothing of the server is left: process group gone, memory released. Never raises for a dead server."""

    async def check_alive(self, server: ReadyServer) -> str | None:
        """None while the server runs; else one sentence that says how it ended."""

    async def close(self) -> None:
        """Ends whatever is still running; called once, also after an interrupt."""
