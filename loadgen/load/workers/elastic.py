"""The load of one process: as many requests in flight as the parent says, at every moment."""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self

from loadgen.clock import now_s
from loadgen.load.collector import Collector
from loadgen.load.crew import Crew
from loadgen.load.health import cpu_seconds
from loadgen.load.request import prepare
from loadgen.load.shape import WindowHooks
from loadgen.load.workers.messages import Ended, Job, Progress, Record, ToParent, Users

PROGRESS_S = 0.1


class ElasticLoad:
    """A closed loop whose concurrency may change. Tells its progress and its records; the window lies with the parent.
    Leaving the context without `stop` ends every request at once.
    """

    def __init__(self, job: Job, tell: Callable[[ToParent], None]) -> None:
        self._job = job
        self._tell = tell
        self._cancel = asyncio.Event()
        # the parent keeps what it wants of the records: none is kept here
        collector = Collector(lambda record: tell(Record(record)), keep=False)
        self._crew = Crew(job.target, WindowHooks(), self._cancel, collector=collector)
        self._requests = iter([prepare(prompt, job.target) for prompt in job.prompts])
        self._wanted = 0
        self._running: set[int] = set()
        self._holding: set[int] = set()
        self._exhausted = False
        self._stopping = False
        self._cpu_s = (0.0, 0.0)
        self._helpers: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        await self._crew.__aenter__()
        self._helpers.append(asyncio.create_task(self._report()))
        if self._job.stream_s is not None:
            self._helpers.append(asyncio.create_task(self._decode(self._job.stream_s)))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for helper in self._helpers:
            helper.cancel()
        await asyncio.gather(*self._helpers, return_exceptions=True)
        await self._crew.__aexit__(kind, error, trace)
        if error is None:
            self._progress()
            self._tell(Ended(self._crew.lag_p99_s, self._cpu_s[1] - self._cpu_s[0]))

    def users(self, message: Users) -> None:
        """Starts workers, or lets the last ones end after their request."""
        if self._stopping:
            return
        self._wanted = message.count
        missing = [number for number in range(message.count) if number not in self._running]
        for place, number in enumerate(missing):
            self._running.add(number)
            self._crew.spawn(self._worker(number, message.start_s + place * message.every_s))

    async def window(self, *, opens: bool) -> None:
        """Notes the window's edge."""
        if opens:
            await self._crew.open_window()
            self._cpu_s = (cpu_seconds(), cpu_seconds())
        else:
            await self._crew.close_window()
            self._cpu_s = (self._cpu_s[0], cpu_seconds())

    def stop(self, *, at_once: bool) -> None:
        """No more requests; those in flight finish, or are ended."""
        self._wanted = 0
        self._stopping = True
        if at_once:
            self._cancel.set()
        self._crew.notify()

    async def over(self) -> None:
        """Returns when the load was stopped and nothing is in flight any more. Raises what broke a worker."""
        await self._crew.wait(lambda: self._stopping and not self._crew.tasks, "drain")

    async def _worker(self, number: int, start_s: float) -> None:
        first, step = self._job.numbers
        try:
            await asyncio.sleep(max(0.0, start_s - now_s()))
            while number < self._wanted:
                request = next(self._requests, None)
                if request is None:
                    self._exhausted = True
                    return
                self._holding.add(number)
                await self._crew.request(request, first + number * step)
        finally:
            self._running.discard(number)
            self._holding.discard(number)

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(PROGRESS_S)
            self._progress()

    def _progress(self) -> None:
        collector = self._crew.collector
        self._tell(
            Progress(
                in_flight=len(self._crew.in_flight),
                holding=len(self._holding),
                finished=collector.finished,
                failed=collector.failed,
                tokens=collector.finished_tokens + sum(len(a.times_s) for a in self._crew.in_flight.values()),
                exhausted=self._exhausted,
            )
        )

    async def _decode(self, every_s: float) -> None:
        while True:
            await asyncio.sleep(every_s)
            self._crew.collector.decode_pending()
