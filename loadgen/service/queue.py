"""Which sweep runs when: one per GPU, the simulator's one per machine, first come first served.

What waits and what runs is also written in the run folders (events `queued`, `cancelled`), so that a new service goes
on where a killed one ended.
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from loadgen.errors import LoadgenError
from loadgen.service.child import Child, adopt, start
from loadgen.service.problems import Refusal
from loadgen.service.runsfolder import PROGRESS, RunsFolder
from loadgen.service.settings import Settings
from loadgen.service.state import RunState, Standing, collide, last_words, resources, standing, sweep_pid
from loadgen.store.folder import RunFolder
from loadgen.store.lock import FolderLock

_LOOK_AGAIN_S = 2.0


@dataclass
class _Active:
    child: Child
    takes: frozenset[str]
    asked_here: bool = True
    task: "asyncio.Task[None] | None" = None
    cancelled: bool = False


class SweepQueue:
    """Starts, stops and follows sweeps. All methods belong to one event loop."""

    def __init__(self, runs: RunsFolder, settings: Settings) -> None:
        self._runs = runs
        self._settings = settings
        self._waiting: dict[str, frozenset[str]] = {}
        self._active: dict[str, _Active] = {}
        self._closing = False
        self._again: asyncio.TimerHandle | None = None
        self._starting = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Takes up what the folders say: sweeps that still run, sweeps that wait, sweeps that were killed."""
        found: list[tuple[str, str]] = []
        for name in self._runs.names():
            folder = self._runs.folder(name)
            now = standing(folder)
            if now.sweep_pid is not None:
                self._adopt(name)
            elif now.asked_here and now.last in ("queued", "started"):
                found.append((now.at, name))
        for _, name in sorted(found):
            with contextlib.suppress(LoadgenError):
                self._waiting[name] = self._takes(self._runs.folder(name))
        await self._pump()

    async def submit(self, folder: RunFolder) -> None:
        """Puts a run at the queue's end. Refusal 409 if it runs or waits, 429 if the queue is full."""
        name = folder.run_id
        if name in self._waiting or name in self._active or standing(folder).sweep_pid is not None:
            raise Refusal(409, "This run waits or runs already.")
        self.check_room()
        takes = self._takes(folder)
        _append(folder, "queued", "asked for over the service")
        self._waiting[name] = takes
        await self._pump()

    def check_room(self) -> None:
        """Refusal 429 if the queue is full, 503 if the service is being stopped."""
        if self._closing:
            raise Refusal(503, "The service is being stopped; try again when it is up.")
        if len(self._waiting) >= self._settings.max_queue:
            raise Refusal(429, f"{self._settings.max_queue} sweeps wait already; cancel one, or wait for their end.")

    async def cancel(self, name: str) -> None:
        """Takes a waiting run out of the queue, or asks a running one to stop. Refusal 409 if it does neither."""
        if name in self._waiting:
            del self._waiting[name]
            _append(self._runs.folder(name), "cancelled", "cancelled before it began")
            return
        active = self._active.get(name) or self._adopt(name)
        if active is None:
            raise Refusal(409, "This run neither waits nor runs, so there is nothing to cancel.")
        if not active.cancelled:
            active.cancelled = True
            self._spawn(active.child.stop(self._settings.stop_s))

    def state(self, name: str, now: RunState) -> tuple[RunState, int | None]:
        """(state, position in the queue): what the folder tells, and what only this process knows."""
        if name in self._waiting:
            return RunState.QUEUED, list(self._waiting).index(name) + 1
        active = self._active.get(name)
        if active is not None:
            return (RunState.STOPPING if active.cancelled or self._closing else RunState.RUNNING), None
        # Queued in a folder, but not by this process: cancelled while its event could not be written, say.
        return (RunState.INTERRUPTED if now is RunState.QUEUED else now), None

    async def close(self) -> None:
        """Stops the sweeps of the service, as Ctrl-C would; they wait in their folders for the next one."""
        self._closing = True
        if self._again:
            self._again.cancel()
        ours = [one for one in self._active.values() if one.asked_here]
        others = [one.task for one in self._active.values() if one.task and not one.asked_here]
        for task in others:
            task.cancel()
        await asyncio.gather(*(one.child.stop(self._settings.stop_s) for one in ours))
        await asyncio.gather(*(one.task for one in ours if one.task), *others, *self._tasks, return_exceptions=True)

    async def _pump(self) -> None:
        """Starts every waiting sweep that collides neither with a running one nor with one before it."""
        async with self._starting:
            taken = [one.takes for one in self._active.values()]
            foreign = await asyncio.to_thread(self._foreign) if self._waiting else []
            for name, takes in list(self._waiting.items()):
                if self._closing:
                    return
                if any(collide(takes, other) for other in (*taken, *foreign)):
                    taken.append(takes)
                    continue
                del self._waiting[name]
                await self._start(name, takes)
                taken.append(takes)
            if self._waiting and foreign and self._again is None:
                self._again = asyncio.get_running_loop().call_later(_LOOK_AGAIN_S, self._look_again)

    def _look_again(self) -> None:
        self._again = None
        self._spawn(self._pump())

    async def _start(self, name: str, takes: frozenset[str]) -> None:
        try:
            folder = self._runs.folder(name)
            child = await start(self._settings.sweep, folder.path, self._runs.root)
        except (Refusal, OSError) as error:
            with contextlib.suppress(Refusal):
                _append(self._runs.folder(name), "interrupted", f"its process could not be started ({error})")
            return
        self._follow(name, _Active(child, takes))

    def _adopt(self, name: str) -> _Active | None:
        folder = self._runs.folder(name)
        child = adopt(folder.path)
        if child is None:
            return None
        return self._follow(name, _Active(child, self._takes(folder), asked_here=standing(folder).asked_here))

    def _follow(self, name: str, active: _Active) -> _Active:
        self._active[name] = active
        active.task = asyncio.get_running_loop().create_task(self._until_ended(name, active))
        return active

    async def _until_ended(self, name: str, active: _Active) -> None:
        code = await active.child.ended()
        try:
            folder = self._runs.folder(name)
            now = standing(folder)
            self._settle(folder, now, active, code)
        except Refusal:
            pass  # someone removed the folder
        finally:
            del self._active[name]
        if not self._closing:
            self._spawn(self._pump())

    def _settle(self, folder: RunFolder, now: Standing, active: _Active, code: int | None) -> None:
        """Writes what the sweep could not write itself."""
        if now.last == "completed":
            return
        if active.cancelled:
            _append(folder, "cancelled", "cancelled")
        elif self._closing and now.asked_here:
            _append(folder, "queued", "the service was stopped; a new one goes on")
        elif now.last in ("queued", "started"):
            words = last_words(folder.path / PROGRESS) or f"its process ended with code {code}"
            _append(folder, "interrupted", words)

    def _foreign(self) -> list[frozenset[str]]:
        """What sweeps take that were started elsewhere in this runs folder since this service began."""
        found: list[frozenset[str]] = []
        for name in self._runs.names():
            if name not in self._active and name not in self._waiting:
                with contextlib.suppress(LoadgenError, Refusal):
                    folder = self._runs.folder(name)
                    if sweep_pid(folder.path) is not None:
                        found.append(self._takes(folder))
        return found

    def _takes(self, folder: RunFolder) -> frozenset[str]:
        manifest = folder.manifest()
        return resources(manifest.settings, manifest.engine)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _append(folder: RunFolder, kind: str, text: str) -> None:
    """One event, under the run's lock; nothing if another process writes there, for its word counts then."""
    with contextlib.suppress(LoadgenError), FolderLock(folder.path), contextlib.closing(folder):
        folder.append_event(kind, text)
