"""One request and its response on one connection: the bytes' sink, its bounds and its time-outs."""

import asyncio
from collections import deque

from loadgen.clock import now_s
from loadgen.load.arrivals import Arrivals, End
from loadgen.load.target import Timeouts

HIGH_WATER = 256 * 1024
LOW_WATER = 64 * 1024
MAX_CAPTURE = 256 * 1024 * 1024
"""A captured body beyond this ends the exchange: no server can fill the memory."""


class Exchange:
    """Takes stamped body blocks from a connection and wakes whoever waits, as seldom as it can.

    Captured: blocks are gathered, one wake-up at the end. Streamed: blocks queue up between two water marks.
    """

    __slots__ = (
        "_loop",
        "_timer",
        "arrivals",
        "buffer",
        "buffered",
        "capture",
        "done",
        "limits",
        "waiter",
    )

    def __init__(self, arrivals: Arrivals, limits: Timeouts, *, capture: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self.arrivals = arrivals
        self.limits = limits
        self.capture = capture
        self.done = False
        self.buffer: deque[bytes] = deque()
        self.buffered = 0
        self.waiter: asyncio.Future[None] | None = None

    async def wait(self) -> None:
        """Returns when something new is known: the head, a block (streamed only), or the end."""
        if self.done or (self.buffer and not self.capture):
            return
        self.waiter = self._loop.create_future()
        try:
            await self.waiter
        finally:
            self.waiter = None

    def wake(self) -> None:
        """Wakes the one who waits, if somebody does."""
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def started(self, sent_s: float) -> None:
        """The request bytes go out now."""
        self.arrivals.sent_s = sent_s
        self.arrivals.attempts += 1
        self.watch()

    def head(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """The response's head is known."""
        self.arrivals.status, self.arrivals.headers = status, headers
        if not self.capture:
            self.wake()

    def block(self, at_s: float, data: bytes) -> None:
        """One network read's body bytes."""
        if self.capture:
            self.arrivals.add(at_s, data)
            return
        self.arrivals.times_s.append(at_s)
        self.arrivals.size += len(data)
        self.buffer.append(data)
        self.buffered += len(data)
        self.wake()

    def take(self) -> bytes:
        """The next queued block of a streamed response."""
        data = self.buffer.popleft()
        self.buffered -= len(data)
        return data

    def finish(self, how: End, at_s: float, error: str | None = None) -> None:
        """The exchange is over; later calls change nothing."""
        if self.done:
            return
        self.done = True
        self.arrivals.end(how, at_s, error)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.wake()

    def watch(self) -> None:
        """(Re)arms the one timer that looks after all limits; it is not moved for every read."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self._next_limit()
        if due is not None and not self.done:
            self._timer = self._loop.call_later(max(0.0, due[0] - now_s()) + 0.001, self._check)

    def _next_limit(self) -> tuple[float, End, float] | None:
        """(when, which, its length) of the limit that is due first; None if nothing limits this phase."""
        sent, limits = self.arrivals.sent_s, self.limits
        candidates: list[tuple[float, End, float]] = []
        if limits.total_s is not None:
            candidates.append((sent + limits.total_s, End.TOTAL_TIMEOUT, limits.total_s))
        if self.arrivals.first_byte_s is None:
            if limits.first_byte_s is not None:
                candidates.append((sent + limits.first_byte_s, End.FIRST_BYTE_TIMEOUT, limits.first_byte_s))
        elif limits.idle_s is not None:
            last_s = self.arrivals.times_s[-1] if self.arrivals.times_s else self.arrivals.first_byte_s
            candidates.append((last_s + limits.idle_s, End.IDLE_TIMEOUT, limits.idle_s))
        return min(candidates, default=None)

    def _check(self) -> None:
        self._timer = None
        due = self._next_limit()
        now = now_s()
        if due is not None and due[0] <= now:
            name = due[1].value.replace("_", " ")
            self.finish(due[1], now, f"{name} of {due[2]:g} s")
        else:
            self.watch()
