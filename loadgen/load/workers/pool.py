"""Load processes of this machine, as their asyncio parent sees them."""

import asyncio
import contextlib
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Self

from loadgen.errors import ExitCode, LoadgenError, UsageError
from loadgen.load.workers.messages import (
    HEAD_SIZE,
    Fault,
    Job,
    Progress,
    ToChild,
    ToParent,
    Up,
    for_parent,
    frame,
    length_of,
)

MODULE = "loadgen.load.workers.child"
START_S = 30.0
STOP_S = 5.0
MAX_WORKERS = 64
_NOTHING = Progress(0, 0, 0, 0, 0, exhausted=False)


class WorkerError(LoadgenError):
    """A load process broke; the text says how."""

    exit_code = ExitCode.NO_VERDICT


class Worker:
    """One load process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.progress = _NOTHING
        """The last one that it told of its present job."""

    def send(self, message: ToChild) -> None:
        """Tells it something. Raises WorkerError if it has gone."""
        if self._process.stdin is None or self._process.returncode is not None:
            raise WorkerError("A load process has ended.")
        if isinstance(message, Job):
            self.progress = _NOTHING
        self._process.stdin.write(frame(message))

    async def drained(self) -> None:
        """Returns once it has taken what was sent."""
        if self._process.stdin is not None:
            with contextlib.suppress(ConnectionError):
                await self._process.stdin.drain()

    async def listen(self, until: type[ToParent], on_message: Callable[[ToParent], None]) -> ToParent:
        """The first message of that kind, after those before it were handed over. Raises WorkerError if it broke."""
        reader = self._process.stdout
        if reader is None:
            raise WorkerError("A load process has no output.")
        while True:
            try:
                head = await reader.readexactly(HEAD_SIZE)
                message = for_parent(await reader.readexactly(length_of(head)))
            except asyncio.IncompleteReadError:
                code = await self._process.wait()
                raise WorkerError(f"A load process ended by itself (exit code {code}).") from None
            if isinstance(message, Fault):
                raise WorkerError(f"A load process failed: {message.text}")
            if isinstance(message, Progress):
                self.progress = message
            if isinstance(message, until):
                return message
            on_message(message)

    def kill(self) -> None:
        """Ends it without a word."""
        self._process.kill()

    async def end(self) -> None:
        """It is gone: its standard input ends, and so does it."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(STOP_S):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


class WorkerPool:
    """`count` load processes, started when the context is entered; they take one job after another."""

    def __init__(self, count: int) -> None:
        if not 1 <= count <= MAX_WORKERS:
            raise UsageError(f"--workers {count} is out of range; give a number from 1 to {MAX_WORKERS}.")
        self._count = count
        self.workers: list[Worker] = []

    async def __aenter__(self) -> Self:
        pipe = asyncio.subprocess.PIPE
        try:
            for _ in range(self._count):
                process = await asyncio.create_subprocess_exec(sys.executable, "-m", MODULE, stdin=pipe, stdout=pipe)
                self.workers.append(Worker(process))
            async with asyncio.timeout(START_S):
                await asyncio.gather(*(worker.listen(Up, lambda _: None) for worker in self.workers))
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def _end(self) -> None:
        await asyncio.gather(*(worker.end() for worker in self.workers))
        self.workers.clear()
