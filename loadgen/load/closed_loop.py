"""The closed loop: a fixed number of requests in flight; a worker sends its next prompt when its last one ended."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Protocol

from loadgen.clock import now_s
from loadgen.errors import UsageError
from loadgen.load.client import TransportFactory
from loadgen.load.crew import Crew
from loadgen.load.request import PreparedRequest, prepare
from loadgen.load.shape import ClosedLoop, LoadResult, WindowHooks
from loadgen.load.target import Target
from loadgen.workloads.base import Prompt

_NO_HOOKS = WindowHooks()


class LoadRunner(Protocol):
    """What runs a closed loop, in this process or in several."""

    async def __call__(
        self,
        target: Target,
        prompts: Sequence[Prompt],
        shape: ClosedLoop,
        hooks: WindowHooks,
        *,
        request_estimate_s: float | None = None,
        cancel: asyncio.Event | None = None,
    ) -> LoadResult:
        """As `run_closed_loop`."""


async def run_closed_loop(
    target: Target,
    prompts: Sequence[Prompt],
    shape: ClosedLoop,
    hooks: WindowHooks = _NO_HOOKS,
    *,
    request_estimate_s: float | None = None,
    cancel: asyncio.Event | None = None,
    transport_factory: TransportFactory | None = None,
) -> LoadResult:
    """Every request's record and the window's sums. Prompts are taken in their order; a failed request is not sent
    again, its worker goes on with the next prompt. After the window the requests in flight finish. `cancel` ends them
    at once: their records stay, as `cancelled`. Raises UsageError if there are fewer prompts than workers.
    """
    if shape.concurrency < 1:
        raise UsageError(f"A concurrency of {shape.concurrency} makes no sense: give at least 1.")
    if len(prompts) < shape.concurrency:
        raise UsageError(
            f"{len(prompts)} prompts cannot keep {shape.concurrency} requests in flight: give at least as many "
            "prompts as the concurrency, better four times as many."
        )
    requests = [prepare(prompt, target) for prompt in prompts]
    async with Crew(target, hooks, cancel, transport_factory) as crew:
        loop = _Loop(crew, iter(requests), shape, request_estimate_s)
        await loop.run()
    return crew.result()


class _Loop:
    """The workers and the window of one run."""

    def __init__(
        self, crew: Crew, requests: Iterator[PreparedRequest], shape: ClosedLoop, request_estimate_s: float | None
    ) -> None:
        self._crew = crew
        self._requests = requests
        self._shape = shape
        self._spread_s = shape.spread_s if shape.spread_s is not None else (request_estimate_s or 0.0)
        self._holding = 0
        self._exhausted = False
        self._stopping = False

    async def run(self) -> None:
        crew, shape = self._crew, self._shape
        began_s = now_s()
        for number in range(shape.concurrency):
            crew.spawn(self._worker(number, began_s + number * self._spread_s / shape.concurrency))
        await crew.wait(lambda: self._exhausted or self._holding == shape.concurrency, "ramp")
        await crew.wait(lambda: self._exhausted, "ramp", now_s() + shape.settle_s)
        await crew.open_window()
        await self._window(now_s())
        self._stopping = True
        await crew.close_window()
        await crew.wait(lambda: not crew.tasks, "drain")

    async def _window(self, open_s: float) -> None:
        """Returns when the window has lasted long enough, holds enough requests, or cannot go on."""
        crew, shape = self._crew, self._shape
        ended_before = crew.collector.finished
        await crew.wait(lambda: self._exhausted, "window", open_s + shape.window_s)
        latest_s = open_s + max(shape.window_s, shape.max_window_s)
        await crew.wait(
            lambda: self._exhausted or crew.collector.finished - ended_before >= shape.min_requests, "window", latest_s
        )

    async def _worker(self, number: int, start_s: float) -> None:
        await asyncio.sleep(max(0.0, start_s - now_s()))
        first = True
        while not self._stopping:
            request = next(self._requests, None)
            if request is None:
                self._exhausted = True
                self._crew.notify()
                return
            if first:
                first = False
                self._holding += 1
                self._crew.notify()
            await self._crew.request(request, number)
