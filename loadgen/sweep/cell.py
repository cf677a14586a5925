"""One cell measured: warm-up, idle scrape, window, idle scrape, and the facts on disk."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from loadgen.clock import utc_now
from loadgen.errors import ServerError
from loadgen.load.closed_loop import LoadRunner, run_closed_loop
from loadgen.load.health import CpuTimes, read_cpu_times, steal_share
from loadgen.load.record import Outcome, RequestRecord
from loadgen.load.shape import ClosedLoop, LoadProgress, WindowHooks
from loadgen.load.target import Target
from loadgen.load.warmup import run_warmup
from loadgen.metrics.delta import delta
from loadgen.metrics.gauges import GaugeWatcher, summarise
from loadgen.metrics.model import CounterDelta
from loadgen.metrics.parse import Snapshot
from loadgen.metrics.scrape import MetricsClient, wait_idle
from loadgen.store.folder import RunFolder
from loadgen.store.model import CellKey, CellResult
from loadgen.sweep.facts import ServerSide, cell_result
from loadgen.sweep.interrupt import InterruptedRunError, unless_cancelled
from loadgen.sweep.plan import SweepPlan
from loadgen.workloads.base import Prompt, PromptRequest, Purpose, TokenCounter, Workload
from loadgen.workloads.registry import prompts_sha256

WARMUP_TOKENS = 16
"""Later warm-ups of the same level on the same server: its shapes are compiled, only its caches need company."""


@dataclass(frozen=True)
class CellServer:
    """A running server as a cell sees it."""

    target: Target
    metrics: MetricsClient
    start_number: int


@dataclass
class CellMeasurer:
    """Measures the cells of one plan into one run folder; remembers how long requests last, so that later warm-ups
    can be short.
    """

    plan: SweepPlan
    folder: RunFolder
    workloads: dict[str, Workload]
    cancel: asyncio.Event
    count_tokens: dict[str, TokenCounter] = field(default_factory=dict)
    """By workload; set once the first server has told how long its tokens are, the same for all profiles."""
    run_load: LoadRunner = run_closed_loop
    """In this process, or in several: `loadgen.load.workers.closed_loop.run_workers` with its pool."""
    _request_s: dict[tuple[CellKey, int], float] = field(default_factory=dict)

    async def measure(
        self, key: CellKey, order: int, server: CellServer, on_progress: Callable[[LoadProgress], None]
    ) -> CellResult:
        """The cell, already in the run folder. ServerError if no request succeeded, InterruptedRunError on cancel."""
        started_at = utc_now()
        sampling = replace(self.plan.sampling, temperature=key.condition.temperature)
        target = replace(server.target, sampling=sampling)
        request_s = await unless_cancelled(self.cancel, self._warm_up(key, server, target))
        scrapes = _Scrapes(key, server.metrics, self.folder)
        shape = self._shape(key.level, request_s)
        prompts = self._prompts(key, self._wanted(key.level, shape, request_s), "measure")
        await unless_cancelled(self.cancel, scrapes.idle("idle-before"))
        hooks = WindowHooks(
            on_open=scrapes.window_opens,
            on_close=scrapes.window_closes,
            on_progress=on_progress,
            on_record=lambda record: self.folder.append_request(key, record),
        )
        async with scrapes.watcher:
            load = await self.run_load(target, prompts, shape, hooks, request_estimate_s=request_s, cancel=self.cancel)
        if load.interrupted or self.cancel.is_set():
            raise InterruptedRunError("interrupted")
        _require_success(load.records, "requests")
        await unless_cancelled(self.cancel, scrapes.idle("idle-after"))
        self.folder.append_gauges(key, tuple(scrapes.watcher.samples))
        digest = prompts_sha256(prompts[: max(4 * key.level, 20)])
        facts = scrapes.facts(load.window_open_s, load.window_close_s, server.start_number)
        result = cell_result(key, load, facts, order=order, started_at=started_at, prompts_sha256=digest)
        self.folder.append_cell(result)
        if result.e2e_s.mean is not None:
            self._request_s[self._place(key, server)] = result.e2e_s.mean
        return result

    def _place(self, key: CellKey, server: CellServer) -> tuple[CellKey, int]:
        return replace(key, repeat=0), server.start_number

    def _shape(self, level: int, request_s: float) -> ClosedLoop:
        shape = self.plan.shape
        window_s = max(shape.window_s, shape.window_requests * request_s)
        return ClosedLoop(
            concurrency=level,
            window_s=min(window_s, max(shape.window_s, shape.max_window_s)),
            min_requests=max(shape.min_requests, shape.requests_per_worker * level),
            max_window_s=shape.max_window_s,
            settle_s=shape.settle_for(level, request_s),
        )

    def _wanted(self, level: int, shape: ClosedLoop, request_s: float) -> int:
        """Prompts that last for the window even if requests get twice as fast as the warm-up's were."""
        seconds = shape.window_s + shape.settle_s + 2 * request_s
        by_time = 2 * level * math.ceil(seconds / max(request_s, 0.01))
        # Prompts cost up to a millisecond each; a server this fast ends its window early, and says so.
        return max(min(by_time, 20_000), 2 * (shape.min_requests + level), 20)

    def _prompts(self, key: CellKey, count: int, purpose: Purpose) -> tuple[Prompt, ...]:
        request = PromptRequest(
            seed=self.plan.seed,
            level=key.level,
            repeat=key.repeat,
            count=count,
            purpose=purpose,
            session=key.session,
            input_tokens=key.condition.input_tokens,
            max_tokens=self.plan.max_tokens,
        )
        name = key.condition.workload
        return self.workloads[name].prompts(request, self.count_tokens[name])

    async def _warm_up(self, key: CellKey, server: CellServer, target: Target) -> float:
        """Mean seconds of a request at this level, after the level's own warm-up prompts went through."""
        prompts = self._prompts(key, key.level, "warmup")
        known = self._request_s.get(self._place(key, server))
        if known is not None:
            prompts = tuple(replace(p, max_tokens=min(p.max_tokens, WARMUP_TOKENS)) for p in prompts)
        warmup = await run_warmup(target, prompts, key.level)
        for record in warmup.records:
            self.folder.append_request(key, record, "warmup")
        _require_success(warmup.records, "warm-up requests")
        return warmup.mean_request_s if known is None else known


@dataclass
class _Scrapes:
    """The four scrapes of a cell, and the gauges in between."""

    key: CellKey
    metrics: MetricsClient
    folder: RunFolder
    taken: dict[str, Snapshot] = field(default_factory=dict)
    cpu: list[CpuTimes | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.watcher = GaugeWatcher(self.metrics)

    async def idle(self, moment: str) -> None:
        self._keep(moment, await wait_idle(self.metrics))

    async def window_opens(self) -> None:
        self.cpu.append(read_cpu_times())
        self._keep("window-open", await self.metrics.scrape())

    async def window_closes(self) -> None:
        self._keep("window-close", await self.metrics.scrape())
        self.cpu.append(read_cpu_times())

    def facts(self, opened_s: float, closed_s: float, start_number: int) -> ServerSide:
        return ServerSide(
            window=self._delta("window-open", "window-close"),
            idle=self._delta("idle-before", "idle-after"),
            gauges=summarise(self.watcher.samples, (opened_s, closed_s)),
            steal_share=steal_share(self.cpu[0], self.cpu[1]) if len(self.cpu) == 2 else None,
            start_number=start_number,
        )

    def _keep(self, moment: str, snapshot: Snapshot) -> None:
        self.taken[moment] = snapshot
        self.folder.write_scrape(self.key, moment, snapshot.body)

    def _delta(self, before: str, after: str) -> CounterDelta | None:
        first, last = self.taken.get(before), self.taken.get(after)
        return delta(first, last, last.at_s - first.at_s) if first and last else None


def _require_success(records: tuple[RequestRecord, ...], what: str) -> None:
    failed = [r for r in records if r.outcome is not Outcome.OK]
    if records and len(failed) == len(records):
        first = failed[0]
        raise ServerError(f"All {len(failed)} {what} failed ({first.outcome}: {first.error or 'no message'}).")
