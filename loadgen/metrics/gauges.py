"""Gauges over a window: how many requests really ran, how many waited, how full the KV cache was."""

import asyncio
import math
import statistics
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

from loadgen.clock import now_s
from loadgen.errors import ServerError
from loadgen.metrics import names
from loadgen.metrics.model import GaugeSample, GaugeSummary
from loadgen.metrics.parse import Sample, Snapshot
from loadgen.metrics.scrape import MetricsClient

INTERVAL_S = 0.5


def gauge_sample(snapshot: Snapshot) -> GaugeSample:
    """The snapshot's gauges: requests summed over engines, KV use the largest (two engines at 40 % are not at 80 %)."""
    running = _numbers(snapshot.find(*names.RUNNING))
    waiting = _numbers(snapshot.find(*names.WAITING))
    usage = _numbers(snapshot.find(*names.KV_CACHE_USAGE))
    return GaugeSample(
        at_s=snapshot.at_s,
        running=sum(running) if running else None,
        waiting=sum(waiting) if waiting else None,
        kv_cache_usage=max(usage) if usage else None,
        scrape_s=snapshot.seconds,
    )


def not_numbers(snapshot: Snapshot) -> int:
    """How many rows of the gauges are NaN or infinite, and so were left out."""
    rows = [sample for name in names.GAUGES for sample in snapshot.samples.get(name, ())]
    return sum(not math.isfinite(sample.value) for sample in rows)


def summarise(samples: Iterable[GaugeSample], window: tuple[float, float]) -> GaugeSummary:
    """Means and maxima over the samples with window[0] ≤ at_s ≤ window[1] (monotonic seconds)."""
    inside = [sample for sample in samples if window[0] <= sample.at_s <= window[1]]
    running = [sample.running for sample in inside if sample.running is not None]
    waiting = [sample.waiting for sample in inside if sample.waiting is not None]
    usage = [sample.kv_cache_usage for sample in inside if sample.kv_cache_usage is not None]
    scrapes = [sample.scrape_s for sample in inside]
    return GaugeSummary(
        n=len(inside),
        running_mean=statistics.fmean(running) if running else None,
        running_max=max(running, default=None),
        waiting_mean=statistics.fmean(waiting) if waiting else None,
        waiting_max=max(waiting, default=None),
        kv_cache_usage_max=max(usage, default=None),
        scrape_p50_s=statistics.median(scrapes) if scrapes else None,
        scrape_max_s=max(scrapes, default=None),
    )


class GaugeWatcher:
    """Looks at the gauges twice a second while its block runs: `async with GaugeWatcher(client) as watcher: ...`."""

    def __init__(
        self,
        client: MetricsClient,
        interval_s: float = INTERVAL_S,
        on_sample: Callable[[GaugeSample], None] | None = None,
    ) -> None:
        self.samples: list[GaugeSample] = []
        self.failed = 0
        """Scrapes that got no answer; a busy API server is a finding, not a reason to stop."""
        self.not_numbers = 0
        self._client = client
        self._interval_s = interval_s
        self._on_sample = on_sample
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._watch())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            if not self._task.cancelled() and (failure := self._task.exception()) is not None:
                raise failure

    async def _watch(self) -> None:
        due = now_s()
        while True:
            await self._look()
            # Absolute deadlines: a slow answer does not stretch the rhythm, and a missed beat is left out.
            due += self._interval_s * max(1, math.ceil((now_s() - due) / self._interval_s))
            await asyncio.sleep(max(0.0, due - now_s()))

    async def _look(self) -> None:
        try:
            snapshot = await self._client.scrape(names.GAUGES)
        except ServerError:
            self.failed += 1
            return
        self.not_numbers += not_numbers(snapshot)
        sample = gauge_sample(snapshot)
        self.samples.append(sample)
        if self._on_sample is not None:
            self._on_sample(sample)


def _numbers(samples: Iterable[Sample] | None) -> list[float]:
    return [sample.value for sample in samples or () if math.isfinite(sample.value)]
