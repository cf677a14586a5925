"""The open loop: requests start when the schedule says so, whether or not earlier ones have ended."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence

from asyncio_throttle.throttler import Throttler

from loadgen.clock import now_s
from loadgen.errors import UsageError
from loadgen.load.client import TransportFactory
from loadgen.load.crew import Crew
from loadgen.load.request import PreparedRequest, prepare
from loadgen.load.schedule import schedule_length_s, start_offsets
from loadgen.load.shape import LoadResult, OpenLoop, WindowHooks
from loadgen.load.target import Target
from loadgen.workloads.base import Prompt

_NO_HOOKS = WindowHooks()


async def run_open_loop(
    target: Target,
    prompts: Sequence[Prompt],
    shape: OpenLoop,
    hooks: WindowHooks = _NO_HOOKS,
    *,
    cancel: asyncio.Event | None = None,
    transport_factory: TransportFactory | None = None,
) -> LoadResult:
    """Every request's record and the window's sums. One prompt per scheduled start, in their order; the schedule ends
    with the prompts. Each record has `scheduled_s`, and `queued_s` if it had to wait for a slot; a start that is late
    shows in the times from the schedule and moves no later start. Raises UsageError for a shape or prompts that give
    no request.
    """
    offsets = start_offsets(shape)
    if not prompts:
        raise UsageError("There are no prompts: give a workload that has some.")
    if shape.max_concurrency < 1:
        raise UsageError(f"A concurrency cap of {shape.max_concurrency} makes no sense: give at least 1.")
    requests = [prepare(prompt, target) for prompt, _ in zip(prompts, offsets, strict=False)]
    length_s = schedule_length_s(shape) if len(requests) == len(offsets) else offsets[len(requests) - 1]
    async with Crew(target, hooks, cancel, transport_factory) as crew:
        loop = _Loop(crew, shape)
        await loop.run(list(zip(offsets, requests, strict=False)), length_s)
    return crew.result()


class _Loop:
    """The starter and the slots of one run."""

    def __init__(self, crew: Crew, shape: OpenLoop) -> None:
        self._crew = crew
        self._shape = shape
        self._free = list(range(shape.max_concurrency - 1, -1, -1))
        self._slots = asyncio.Semaphore(shape.max_concurrency)
        limit = shape.max_starts_per_s
        # a tenth of a second at a time, so that the limit holds within each tenth and not only on average
        tenth = max(1, math.ceil(limit / 10)) if limit else 0
        self._may_start: Callable[[], Awaitable[None]] | None = None
        if limit:
            self._may_start = Throttler(tenth, tenth / limit, 0.001).acquire
        self._gate = asyncio.Lock()  # the throttler polls: one waits in it, the others wait here

    async def run(self, starts: list[tuple[float, PreparedRequest]], length_s: float) -> None:
        crew = self._crew
        began_s = now_s()
        crew.spawn(self._start_all(starts, began_s))
        await crew.wait(lambda: not crew.tasks, "ramp", began_s + min(self._shape.settle_s, length_s))
        await crew.open_window()
        # until the end of the schedule even if nothing is in flight: a pause belongs to it
        await crew.wait(lambda: False, "window", began_s + length_s)
        await crew.close_window()
        await crew.wait(lambda: not crew.tasks, "drain")

    async def _start_all(self, starts: list[tuple[float, PreparedRequest]], began_s: float) -> None:
        """Absolute deadlines: lateness never adds up."""
        for offset_s, request in starts:
            due_s = began_s + offset_s
            pause_s = due_s - now_s()
            if pause_s > 0:
                await asyncio.sleep(pause_s)
            self._crew.spawn(self._send(request, due_s))

    async def _send(self, request: PreparedRequest, due_s: float) -> None:
        wanted_s = now_s()
        async with self._slots:
            if self._may_start is not None:
                async with self._gate:
                    await self._may_start()
            slot = self._free.pop()
            try:
                await self._crew.request(request, slot, queued_s=now_s() - wanted_s, scheduled_s=due_s)
            finally:
                self._free.append(slot)
