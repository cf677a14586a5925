"""The two servers of a same-quality test, both up or by turns."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping

from loadgen.engines.base import Engine, EngineEvent, ReadyServer, StartRequest
from loadgen.engines.credentials import key_variable
from loadgen.sweep.events import Listener, ServerProgress
from loadgen.sweep.lossless_client import HttpServer


class EngineServers:
    """Starts a profile's server when it is first used. Where two cannot be up together, the other one goes first."""

    def __init__(
        self,
        engine: Engine,
        starts: Mapping[str, StartRequest],
        listener: Listener,
        on_ready: Callable[[ReadyServer], None] = lambda _ready: None,
    ) -> None:
        self.engine = engine
        self.facts: dict[str, ReadyServer] = {}
        """By profile: the server as it came up last."""
        self._starts = starts
        self._listener = listener
        self._on_ready = on_ready
        self._up: dict[str, HttpServer] = {}
        self._locks = {name: asyncio.Lock() for name in starts}

    async def use(self, name: str) -> HttpServer:
        """The server of that profile, ready; ServerError if it does not come up."""
        async with self._locks[name]:  # many questions at once bring it up once
            if name not in self._up:
                if not self.engine.can_run_together:
                    await self.stop()
                ready = await self.engine.start(self._starts[name], self._on_engine)
                self.facts[name] = ready
                self._on_ready(ready)
                self._up[name] = HttpServer(ready.url, ready.model, api_key_variable=key_variable(self.engine.name))
        return self._up[name]

    async def start_together(self) -> None:
        """All servers are up, started at the same time; nothing happens where they cannot be up together."""
        if self.engine.can_run_together:
            async with _first_fault(), asyncio.TaskGroup() as group:
                for name in self._starts:
                    group.create_task(self.use(name))

    async def stop(self) -> None:
        """No server is up."""
        for name in tuple(self._up):
            with contextlib.suppress(OSError):
                await self._up.pop(name).close()
            await self.engine.stop(self.facts[name], self._on_engine)

    def _on_engine(self, event: EngineEvent) -> None:
        self._listener(ServerProgress(event))


@contextlib.asynccontextmanager
async def _first_fault() -> AsyncIterator[None]:
    """A task group's first fault, bare: the others were cancelled because of it."""
    try:
        yield
    except BaseExceptionGroup as faults:
        raise faults.exceptions[0] from None
