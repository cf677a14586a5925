"""The closed loop over several processes: their requests in one window, their records as one result."""

import asyncio
from collections.abc import Callable, Sequence

from loadgen.clock import now_s
from loadgen.errors import UsageError
from loadgen.load.collector import EVENT_BUDGET, without_times
from loadgen.load.health import cpu_seconds
from loadgen.load.record import RequestRecord
from loadgen.load.shape import ClosedLoop, LoadProgress, LoadResult, WindowHooks
from loadgen.load.sums import WindowSums
from loadgen.load.target import Target
from loadgen.load.workers.messages import Ended, Job, Record, Stop, ToParent, Users, Window
from loadgen.load.workers.pool import Worker, WorkerPool
from loadgen.workloads.base import Prompt

LOOK_S = 0.05
PROGRESS_S = 0.25
_NO_HOOKS = WindowHooks()


async def run_workers(
    pool: WorkerPool,
    target: Target,
    prompts: Sequence[Prompt],
    shape: ClosedLoop,
    hooks: WindowHooks = _NO_HOOKS,
    *,
    request_estimate_s: float | None = None,
    cancel: asyncio.Event | None = None,
) -> LoadResult:
    """What `run_closed_loop` gives, measured by the pool's processes together: the level is split among them, the
    window is one (the monotonic clock is the machine's), records and sums are merged; the lag is that of the slowest
    process, CPU time is added up. Raises UsageError for fewer prompts than workers, WorkerError if a process broke.
    """
    if shape.concurrency < 1 or len(prompts) < shape.concurrency:
        raise UsageError(
            f"{len(prompts)} prompts cannot keep {shape.concurrency} requests in flight: give at least as many "
            "prompts as the concurrency, better four times as many."
        )
    run = _Run(pool.workers[: shape.concurrency], shape, hooks, cancel)
    spread_s = shape.spread_s if shape.spread_s is not None else (request_estimate_s or 0.0)
    return await run.run(target, tuple(prompts), spread_s)


class _Run:
    """One load on some processes. Worker k of all runs in process k modulo their number."""

    def __init__(
        self, workers: Sequence[Worker], shape: ClosedLoop, hooks: WindowHooks, cancel: asyncio.Event | None
    ) -> None:
        self._workers = workers
        self._shape = shape
        self._hooks = hooks
        self._cancel = cancel
        self._began_s = now_s()
        self._sums = WindowSums()
        self._records: list[RequestRecord] = []
        self._events_left = EVENT_BUDGET
        self._told = (now_s(), 0)
        self._listeners: list[asyncio.Task[ToParent]] = []

    async def run(self, target: Target, prompts: tuple[Prompt, ...], spread_s: float) -> LoadResult:
        shape, count = self._shape, len(self._workers)
        for first, worker in enumerate(self._workers):
            # prompt j belongs to worker j modulo the level, so that all processes' prompts last equally long
            share = tuple(p for j, p in enumerate(prompts) if j % shape.concurrency % count == first)
            worker.send(Job(target, share, (first, count)))
            self._listeners.append(asyncio.create_task(worker.listen(Ended, self._take)))
        try:
            await asyncio.gather(*(worker.drained() for worker in self._workers))
            await self._measure(spread_s / shape.concurrency)
            ended = await asyncio.gather(*self._listeners)
        finally:
            for listener in self._listeners:
                listener.cancel()
            await asyncio.gather(*self._listeners, return_exceptions=True)
        return self._result([one for one in ended if isinstance(one, Ended)])

    async def _measure(self, every_s: float) -> None:
        shape, count = self._shape, len(self._workers)
        start_s = now_s()
        for first, worker in enumerate(self._workers):
            users = len(range(first, shape.concurrency, count))
            worker.send(Users(users, start_s + first * every_s, count * every_s))
        await self._wait("ramp", lambda: self._exhausted or self._of("holding") == shape.concurrency)
        await self._wait("ramp", lambda: self._exhausted, now_s() + shape.settle_s)
        if self._hooks.on_open is not None and not self._cancelled:
            await self._hooks.on_open()
        self._tell(Window(opens=True))
        self._cpu_open_s, self._sums.open_s = cpu_seconds(), now_s()
        await self._window(self._sums.open_s)
        self._cpu_close_s, self._sums.close_s = cpu_seconds(), now_s()
        self._tell(Window(opens=False))
        # at the window's end, as in one process: the hook's scrape goes on while requests finish
        self._tell(Stop(at_once=self._cancelled))
        if self._hooks.on_close is not None and not self._cancelled:
            await self._hooks.on_close()
        await self._wait("drain", lambda: all(listener.done() for listener in self._listeners))
        if self._cancelled:
            self._tell(Stop(at_once=True))

    async def _window(self, open_s: float) -> None:
        shape, before = self._shape, self._of("finished")
        await self._wait("window", lambda: self._exhausted, open_s + shape.window_s)
        latest_s = open_s + max(shape.window_s, shape.max_window_s)
        await self._wait(
            "window", lambda: self._exhausted or self._of("finished") - before >= shape.min_requests, latest_s
        )

    async def _wait(self, phase: str, done: Callable[[], bool], until_s: float | None = None) -> None:
        """Returns when `done()`, at `until_s`, when the caller cancels, or when a process broke: gathering the
        listeners then raises why.
        """
        while not (self._cancelled or self._broken or done()):
            left_s = LOOK_S if until_s is None else until_s - now_s()
            if left_s <= 0:
                return
            await asyncio.sleep(min(LOOK_S, left_s))
            self._progress(phase)

    def _take(self, message: ToParent) -> None:
        if isinstance(message, Record):
            self._sums.add(message.record)
            self._events_left -= len(message.record.chunk_times_s)
            self._records.append(message.record if self._events_left >= 0 else without_times(message.record))
            if self._hooks.on_record is not None:
                self._hooks.on_record(message.record)

    def _tell(self, message: Window | Stop) -> None:
        for worker, listener in zip(self._workers, self._listeners, strict=True):
            if not listener.done():
                worker.send(message)

    @property
    def _cancelled(self) -> bool:
        return self._cancel is not None and self._cancel.is_set()

    @property
    def _broken(self) -> bool:
        return any(one.done() and one.exception() is not None for one in self._listeners)

    @property
    def _exhausted(self) -> bool:
        return any(worker.progress.exhausted for worker in self._workers)

    def _of(self, name: str) -> int:
        return sum(getattr(worker.progress, name) for worker in self._workers)

    def _progress(self, phase: str) -> None:
        (before_s, before), now, tokens = self._told, now_s(), self._of("tokens")
        if self._hooks.on_progress is None or now - before_s < PROGRESS_S:
            return
        self._told = (now, tokens)
        self._hooks.on_progress(
            LoadProgress(
                elapsed_s=now - self._began_s,
                in_flight=self._of("in_flight"),
                finished=self._of("finished"),
                failed=self._of("failed"),
                tokens_per_s=max(0, tokens - before) / (now - before_s),
                phase=phase,
            )
        )

    def _result(self, ended: Sequence[Ended]) -> LoadResult:
        window_s = self._sums.close_s - self._sums.open_s
        cpu_s = sum(one.cpu_s for one in ended) + self._cpu_close_s - self._cpu_open_s
        return self._sums.result(
            sorted(self._records, key=lambda record: record.end_s),
            loop_lag_p99_s=max((one.loop_lag_p99_s for one in ended), default=0.0),
            cpu_share=cpu_s / window_s if window_s > 0 else 0.0,
            interrupted=self._cancelled,
            processes=len(self._workers),
        )
