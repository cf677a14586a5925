"""The engine core under open load in virtual time: Poisson starts, or users who think between their requests."""

import heapq
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from loadgen.simulator.core import Advance, SimulatedCore
from loadgen.simulator.cost import ApiProcess
from loadgen.simulator.model import SimRequest
from loadgen.simulator.virtual import PromptSource


@dataclass(frozen=True)
class OpenRequest:
    """One request that ended, in seconds from its scheduled start."""

    start_s: float
    ttft_s: float
    e2e_s: float
    tokens: int

    @property
    def tpot_s(self) -> float | None:
        """(E2E − TTFT) / (tokens − 1), None below two tokens."""
        return (self.e2e_s - self.ttft_s) / (self.tokens - 1) if self.tokens > 1 else None


def run_at_rate(
    core: SimulatedCore, source: PromptSource, rate_per_s: float, *, requests: int, seed: int, settle: int = 50
) -> tuple[OpenRequest, ...]:
    """The requests that ended, in the order of their ends, under Poisson starts; the first `settle` starts and those
    that had not ended when the last start came are left out.
    """
    rng = random.Random(f"{seed}/arrivals")
    starts, at = [], 0.0
    for _ in range(requests + settle):
        at += rng.expovariate(rate_per_s)
        starts.append(at)
    return _Run(core, source, iter(starts), None, (starts[settle], starts[-1])).run()


def run_with_users(
    core: SimulatedCore,
    source: PromptSource,
    users: int,
    think_s: float,
    *,
    length_s: float,
    seed: int,
    settle_s: float,
) -> tuple[OpenRequest, ...]:
    """The requests that started and ended between `settle_s` and `length_s`; each user thinks for an exponential time
    (mean `think_s`) before every request, the first one too.
    """
    rng = random.Random(f"{seed}/thinking")
    starts = sorted(rng.expovariate(1 / think_s) for _ in range(users))
    return _Run(core, source, iter(starts), (rng, think_s), (settle_s, length_s)).run()


class _Run:
    """State of one run."""

    def __init__(
        self,
        core: SimulatedCore,
        source: PromptSource,
        starts: Iterator[float],
        thinking: tuple[random.Random, float] | None,
        window: tuple[float, float],
    ) -> None:
        self.core, self.source, self.thinking, self.window = core, source, thinking, window
        self.api = ApiProcess(core.hardware)
        self.due = [(at, i) for i, at in enumerate(starts)]
        heapq.heapify(self.due)
        self.arrivals: list[tuple[float, int, SimRequest]] = []
        self.started: dict[str, float] = {}
        self.first: dict[str, float] = {}
        self.ended: list[OpenRequest] = []
        self.sent = 0
        self.next_user = len(self.due)

    def run(self) -> tuple[OpenRequest, ...]:
        """Steps the engine until the window is over."""
        now = 0.0
        while now < self.window[1]:
            now = self._arrive(now)
            if math.isinf(now):
                break
            advance = self.core.advance(now)
            if advance is None:
                now = max(now, self._next_arrival())
                continue
            now += advance.duration_s
            self._deliver(advance, now)
        return tuple(one for one in self.ended if one.start_s >= self.window[0])

    def _next_arrival(self) -> float:
        queued = self.arrivals[0][0] if self.arrivals else math.inf
        return min(queued, self.due[0][0] if self.due else math.inf)

    def _arrive(self, now: float) -> float:
        """All that has reached the engine by now is added; an idle engine waits for the next start."""
        if not self.core.running and not self.core.waiting:
            now = max(now, self._next_arrival())
        while self.due and self.due[0][0] <= now:
            at, _ = heapq.heappop(self.due)
            request = self.source(self.sent)
            self.started[request.request_id] = at
            heapq.heappush(self.arrivals, (self.api.accept(at), self.sent, request))
            self.sent += 1
        while self.arrivals and self.arrivals[0][0] <= now:
            _, _, request = heapq.heappop(self.arrivals)
            self.core.add(request, now)
        return now

    def _deliver(self, advance: Advance, due_s: float) -> None:
        hardware = self.core.hardware
        free = max(self.api.free_s, due_s)
        for sequence, start, stop, _, _ in advance.emissions:
            free += hardware.api_chunk_s + hardware.api_token_s * (stop - start)
            name = sequence.request.request_id
            if start == 0:
                self.first[name] = free
            if stop >= sequence.end:
                self._end(name, free, stop)
        self.api.free_s = free

    def _end(self, name: str, at_s: float, tokens: int) -> None:
        start = self.started.pop(name)
        self.ended.append(OpenRequest(start, self.first.pop(name) - start, at_s - start, tokens))
        if self.thinking is not None:
            rng, think_s = self.thinking
            heapq.heappush(self.due, (at_s + rng.expovariate(1 / think_s), self.next_user))
            self.next_user += 1
