"""The engine core under a closed loop in virtual time: no server, no clock, many times faster than life."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from loadgen.simulator.core import Advance, SimulatedCore
from loadgen.simulator.cost import ApiProcess
from loadgen.simulator.model import SimRequest

PromptSource = Callable[[int], SimRequest]
"""The request with an index 0, 1, …; an IndexError means that there are no more."""


@dataclass(frozen=True)
class VirtualLoop:
    """`loadgen.load.shape.ClosedLoop` in virtual time."""

    concurrency: int
    window_requests: int
    """The window closes when so many requests have ended in it (and `window_s` is over)."""
    window_s: float = 0.0
    spread_s: float | None = None
    """Workers start spread over this time; None takes the first request's own duration."""
    settle_requests: int = 0
    """Requests that end before the window opens, beside the wait for all workers."""


@dataclass(frozen=True)
class VirtualResult:
    """What a closed loop gave in its window."""

    window_open_s: float
    window_s: float
    tokens: int
    """Tokens that reached the clients in the window, by time."""
    requests: int
    """Requests that ended in the window."""
    ttft_s: tuple[float, ...]
    tpot_s: tuple[float, ...]
    """Per request that ended in the window and has two tokens or more."""
    output_tokens: tuple[int, ...]
    chunks: int
    steps: int
    request_steps: int
    """Decode request-steps: one per output that is not a request's first."""
    drafts: int
    draft_tokens: int
    accepted_tokens: int
    accepted_histogram: tuple[int, ...]
    """Drafts by number of accepted tokens."""
    prompt_tokens: int
    cached_tokens: int
    preemptions: int
    api_busy_share: float
    batch_mean: float
    """Requests scheduled per step."""
    running_mean: float
    """Requests in the engine's steps, averaged over time: what the gauge shows; an idle engine counts 0."""
    half_second_tokens: tuple[int, ...] = field(default=())

    @property
    def tokens_per_s(self) -> float:
        """Output tokens per second over the window."""
        return self.tokens / self.window_s if self.window_s > 0 else 0.0

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted / drafted tokens; None if nothing was drafted."""
        return self.accepted_tokens / self.draft_tokens if self.draft_tokens else None

    @property
    def mean_acceptance_length(self) -> float | None:
        """1 + accepted / drafts; None without drafts."""
        return 1.0 + self.accepted_tokens / self.drafts if self.drafts else None

    @property
    def tokens_per_step(self) -> float | None:
        """Tokens per decode request-step."""
        later = self.tokens - (self.chunks - self.request_steps)
        return later / self.request_steps if self.request_steps else None

    @property
    def mean_tpot_s(self) -> float | None:
        """Mean of the requests' TPOT; None without any."""
        return float(np.mean(self.tpot_s)) if self.tpot_s else None

    @property
    def mean_ttft_s(self) -> float | None:
        """Mean TTFT; None without any."""
        return float(np.mean(self.ttft_s)) if self.ttft_s else None


class _Call:
    """One request as its worker sees it."""

    __slots__ = ("first_s", "last_s", "sent_s", "tokens")

    def __init__(self, sent_s: float) -> None:
        self.sent_s = sent_s
        self.first_s = -1.0
        self.last_s = -1.0
        self.tokens = 0


class _Totals:
    """Counters that are cleared when the window opens."""

    def __init__(self, k: int) -> None:
        self.tokens = self.chunks = self.firsts = self.steps = self.requests = 0
        self.drafts = self.draft_tokens = self.accepted = 0
        self.histogram = [0] * (k + 2)
        self.prompt = self.cached = self.preempted = self.scheduled = 0
        self.request_seconds = 0.0
        self.ttft: list[float] = []
        self.tpot: list[float] = []
        self.lengths: list[int] = []
        self.bins: dict[int, int] = {}


def run_closed_loop(core: SimulatedCore, source: PromptSource, loop: VirtualLoop) -> VirtualResult:
    """The window of one closed loop; the core's own state (caches, server start) lives on.

    ValueError if the prompts run out before the window has closed.
    """
    return _Loop(core, source, loop).run()


class _Loop:
    """State of one run."""

    def __init__(self, core: SimulatedCore, source: PromptSource, loop: VirtualLoop) -> None:
        self.core, self.source, self.loop = core, source, loop
        self.api = ApiProcess(core.hardware)
        self.calls: dict[str, _Call] = {}
        self.arrivals: list[tuple[float, int, SimRequest]] = []
        self.sent = self.started = self.ended = 0
        self.totals = _Totals(core.config.k)
        self.open_s: float | None = None
        self.busy_at_open = 0.0

    def run(self) -> VirtualResult:
        """Starts one worker, then the others over the first request's duration, then goes on to the window's end."""
        now = 0.0
        self._send(0.0)
        self.started = 1
        if self.loop.spread_s is not None:
            self._start_others(0.0, self.loop.spread_s)
        while True:
            now = self._take_arrivals(now)
            advance = self.core.advance(now)
            if advance is None:
                raise ValueError("the prompts ran out before the window closed; give more prompts")
            now += advance.duration_s
            self._deliver(advance, now)
            if self.open_s is None:
                self._maybe_open()
            elif self.ended >= self.loop.window_requests and self._last_delivery() - self.open_s >= self.loop.window_s:
                return self._result(self._last_delivery())

    def _last_delivery(self) -> float:
        return self.api.free_s

    def _send(self, at_s: float) -> None:
        try:
            request = self.source(self.sent)
        except IndexError:
            return
        self.calls[request.request_id] = _Call(at_s)
        heapq.heappush(self.arrivals, (self.api.accept(at_s), self.sent, request))
        self.sent += 1

    def _start_others(self, from_s: float, spread_s: float) -> None:
        count = self.loop.concurrency
        for worker in range(1, count):
            at = from_s + spread_s * worker / count
            request = self.source(self.sent)
            self.calls[request.request_id] = _Call(at)
            way_s = self.core.hardware.api_request_s + self.core.hardware.request_latency_s
            heapq.heappush(self.arrivals, (at + way_s, self.sent, request))
            self.sent += 1
        self.started = count

    def _take_arrivals(self, now: float) -> float:
        """Everything that has arrived by now is with the engine; an idle engine waits for the next arrival."""
        state_idle = not self.core.running and not self.core.waiting
        if state_idle and self.arrivals:
            now = max(now, self.arrivals[0][0])
        while self.arrivals and self.arrivals[0][0] <= now:
            _, _, request = heapq.heappop(self.arrivals)
            self.core.add(request, now)
        return now

    def _deliver(self, advance: Advance, due_s: float) -> None:
        totals, hardware, calls = self.totals, self.core.hardware, self.calls
        chunk_s, token_s = hardware.api_chunk_s, hardware.api_token_s
        free = max(self.api.free_s, due_s)
        ended: list[float] = []
        for sequence, start, stop, drafted, accepted in advance.emissions:
            count = stop - start
            free += chunk_s + token_s * count
            totals.tokens += count
            if drafted:
                totals.drafts += 1
                totals.draft_tokens += drafted
                totals.accepted += accepted
                totals.histogram[accepted] += 1
            if start == 0:
                call = calls[sequence.request.request_id]
                call.first_s = free
                totals.firsts += 1
            if stop >= sequence.end:
                self._end(sequence.request.request_id, free, stop)
                ended.append(free)
        self.api.busy_s += chunk_s * len(advance.emissions) + token_s * advance.generated
        self.api.free_s = free
        totals.chunks += len(advance.emissions)
        totals.steps += 1
        totals.scheduled += advance.shape.requests
        totals.request_seconds += advance.shape.requests * advance.duration_s
        totals.prompt += advance.prefix_queries
        totals.cached += advance.prefix_hits
        totals.preempted += advance.preempted
        if self.open_s is not None:
            half = int((free - self.open_s) * 2.0)
            totals.bins[half] = totals.bins.get(half, 0) + advance.generated
        for at in ended:
            self._send(at)

    def _end(self, request_id: str, at_s: float, tokens: int) -> None:
        call = self.calls.pop(request_id)
        self.ended += 1
        if self.started < self.loop.concurrency:
            self._start_others(at_s, at_s - call.sent_s)
        if self.open_s is None:
            return
        totals = self.totals
        totals.requests += 1
        totals.lengths.append(tokens)
        totals.ttft.append(call.first_s - call.sent_s)
        if tokens > 1:
            totals.tpot.append((at_s - call.first_s) / (tokens - 1))

    def _maybe_open(self) -> None:
        """The window opens when all workers hold a request and the settling is over."""
        all_hold = self.started >= self.loop.concurrency and not (self.arrivals and self.ended == 0)
        waits = any(arrival[0] > self.api.free_s for arrival in self.arrivals) and self.ended < self.loop.concurrency
        if all_hold and not waits and self.ended >= self.loop.settle_requests:
            self.open_s = self.api.free_s
            self.busy_at_open = self.api.busy_s
            self.totals = _Totals(self.core.config.k)
            self.ended = 0

    def _result(self, close_s: float) -> VirtualResult:
        totals, opened = self.totals, self.open_s or 0.0
        window = close_s - opened
        return VirtualResult(
            window_open_s=opened,
            window_s=window,
            tokens=totals.tokens,
            requests=totals.requests,
            ttft_s=tuple(totals.ttft),
            tpot_s=tuple(totals.tpot),
            output_tokens=tuple(totals.lengths),
            chunks=totals.chunks,
            steps=totals.steps,
            request_steps=totals.chunks - totals.firsts,
            drafts=totals.drafts,
            draft_tokens=totals.draft_tokens,
            accepted_tokens=totals.accepted,
            accepted_histogram=tuple(totals.histogram),
            prompt_tokens=totals.prompt,
            cached_tokens=totals.cached,
            preemptions=totals.preempted,
            api_busy_share=(self.api.busy_s - self.busy_at_open) / window if window > 0 else 0.0,
            batch_mean=totals.scheduled / totals.steps if totals.steps else 0.0,
            running_mean=totals.request_seconds / window if window > 0 else 0.0,
            half_second_tokens=tuple(totals.bins.get(i, 0) for i in range(int(window * 2.0))),
        )
