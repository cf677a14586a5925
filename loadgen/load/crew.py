"""What every load run has: a client, its workers' live exchanges, waiting with progress, and a clean end."""

import asyncio
import gc
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self

from loadgen.clock import now_s
from loadgen.load.arrivals import Arrivals, End
from loadgen.load.client import TransportFactory, make_client
from loadgen.load.collector import Collector
from loadgen.load.decode import Slot
from loadgen.load.health import LagSampler, cpu_seconds
from loadgen.load.request import PreparedRequest
from loadgen.load.sender import Sender
from loadgen.load.shape import LoadProgress, LoadResult, WindowHooks
from loadgen.load.target import Target

PROGRESS_S = 0.25
GC_THRESHOLDS = (50_000, 20, 100)
"""Instead of (700, 10, 10): an exchange leaves no cycles behind that would have to be found soon."""
AFTER_CONNECT_FAILURE_S = 0.05
"""A server that refuses connections must not eat the whole prompt list in a moment."""


def _nothing() -> bool:
    return False


class Crew:
    """Sends requests for workers and knows what is in flight. Leaving the context ends every task and socket, and
    decodes whatever has not been decoded yet.
    """

    def __init__(
        self,
        target: Target,
        hooks: WindowHooks,
        cancel: asyncio.Event | None,
        transport_factory: TransportFactory | None = None,
        collector: Collector | None = None,
    ) -> None:
        self.target = target
        self.hooks = hooks
        self.collector = collector or Collector(hooks.on_record, count_tokens=hooks.on_progress is not None)
        self._changed = asyncio.Event()
        self._awaited: Callable[[], bool] = _nothing
        self.in_flight: dict[int, Arrivals] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self._cancel = cancel
        self._client = make_client(target, transport_factory)
        self._sender = Sender(self._client, target)
        self._lag = LagSampler()
        self._began_s = now_s()
        self._cpu_open = self._cpu_close = self._lag_p99 = 0.0
        self._faults: list[BaseException] = []
        self._last_progress = (now_s(), 0)
        self._watch: asyncio.Task[object] | None = None

    async def __aenter__(self) -> Self:
        # what was there before the load (modules, prompts) is no garbage: a full collection in the window must not
        # walk through it, which takes 10 ms and more
        gc.freeze()
        self._gc_thresholds = gc.get_threshold()
        gc.set_threshold(*GC_THRESHOLDS)
        self._lag.start()
        if self._cancel is not None:
            self._watch = asyncio.create_task(self._cancel.wait())
            self._watch.add_done_callback(lambda _: self._changed.set())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.end_tasks()
        finally:
            self._lag.stop()
            await self.collector.finish()
            await self._client.aclose()
            gc.set_threshold(*self._gc_thresholds)
            gc.unfreeze()

    @property
    def lag_p99_s(self) -> float:
        """The loop's lag in the window, once that has closed."""
        return self._lag_p99

    @property
    def cancelled(self) -> bool:
        """True once the caller asked for the end."""
        return self._cancel is not None and self._cancel.is_set()

    def spawn(self, worker: Coroutine[Any, Any, None]) -> None:
        """Starts a worker and looks after it until it ends."""
        task = asyncio.create_task(worker)
        self.tasks.add(task)
        task.add_done_callback(self._ended)

    async def end_tasks(self) -> None:
        """Cancels what still runs and waits for it."""
        tasks = list(self.tasks)
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def request(
        self, request: PreparedRequest, worker: int, *, queued_s: float = 0.0, scheduled_s: float | None = None
    ) -> End:
        """Sends one request and collects its outcome; says how it ended on the wire."""
        arrivals = Arrivals()
        self.in_flight[worker] = arrivals
        try:
            await self._sender.send(request, arrivals)
        finally:
            del self.in_flight[worker]
            self.collector.add(request.asked, arrivals, Slot(worker, queued_s, scheduled_s))
            self.notify()
        if arrivals.ended is End.CONNECT_FAILED:
            await asyncio.sleep(AFTER_CONNECT_FAILURE_S)
        return arrivals.ended

    async def wait(self, done: Callable[[], bool], phase: str, until_s: float | None = None) -> None:
        """Returns when `done()`, at `until_s`, or when the caller cancels; reports progress meanwhile. A worker's own
        fault (not a request's failure) is raised.
        """
        self._awaited = done
        while True:
            self._changed.clear()
            if self._faults:
                raise self._faults[0]
            now = now_s()
            if self.cancelled or done() or (until_s is not None and now >= until_s):
                return
            pause = PROGRESS_S if until_s is None else min(PROGRESS_S, until_s - now)
            try:
                async with asyncio.timeout(pause):
                    await self._changed.wait()
            except TimeoutError:
                pass
            self._progress(phase)

    def notify(self) -> None:
        """Says that what `wait` waits for may have come true. Its task is woken only if it has: one wake-up per request
        would be a tenth of a request's cost.
        """
        if self._awaited():
            self._changed.set()

    async def open_window(self) -> None:
        """Calls the hook, then opens: the client's window lies inside the server's."""
        if self.hooks.on_open is not None and not self.cancelled:
            await self.hooks.on_open()
        self._cpu_open = cpu_seconds()
        self.collector.sums.open_s = now_s()

    async def close_window(self) -> None:
        """Closes, then calls the hook."""
        self.collector.sums.close_s = now_s()
        self._cpu_close = cpu_seconds()
        self._lag_p99 = self._lag.p99_s(self.collector.sums.open_s, self.collector.sums.close_s)
        if self.hooks.on_close is not None and not self.cancelled:
            await self.hooks.on_close()

    def result(self) -> LoadResult:
        """What the run gave; only after the context was left."""
        sums = self.collector.sums
        window = sums.close_s - sums.open_s
        return sums.result(
            self.collector.records,
            loop_lag_p99_s=self._lag_p99,
            cpu_share=(self._cpu_close - self._cpu_open) / window if window > 0 else 0.0,
            interrupted=self.cancelled,
        )

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        fault = None if task.cancelled() else task.exception()
        if fault is not None:
            self._faults.append(fault)
            self._changed.set()
        self.notify()

    def _progress(self, phase: str) -> None:
        if self.hooks.on_progress is None:
            return
        now, collector = now_s(), self.collector
        before_s, before = self._last_progress
        if now - before_s < PROGRESS_S:
            return
        reads = collector.finished_reads + sum(len(a.times_s) for a in self.in_flight.values())
        per_read = collector.finished_tokens / collector.finished_reads if collector.finished_reads else 1.0
        self._last_progress = (now, reads)
        self.hooks.on_progress(
            LoadProgress(
                elapsed_s=now - self._began_s,
                in_flight=len(self.in_flight),
                finished=collector.finished,
                failed=collector.failed,
                tokens_per_s=max(0, reads - before) / (now - before_s) * per_read,
                phase=phase,
            )
        )
