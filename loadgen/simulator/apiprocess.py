"""The API server process as vLLM has it: one process through which every request and every chunk passes in turn.

At high rates it saturates before the engine does (an H200 at 256 requests: one core full, TTFT 1.9 s; h200.md).
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

_EARLY_S = 0.0005
"""Chunks due within half a millisecond go out together: a timer of its own for each would cost more than it tells."""


class ApiTimes(Protocol):
    """When the process is through with what it gets; it does one thing at a time, in order."""

    def accept(self, now_s: float) -> float:
        """When a request that arrives now has reached the engine."""

    def deliver(self, due_s: float, tokens: int) -> float:
        """When a chunk that the engine gave out at `due_s` is with the client."""


class Outbox:
    """Chunks that wait for the API process, in order."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._queue: deque[tuple[float, Callable[[], None]]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def put(self, at_s: float, send: Callable[[], None]) -> None:
        """`send` is called at `at_s`, which must not lie before an earlier one's; see `pump`."""
        self._queue.append((at_s, send))

    def pump(self) -> None:
        """Calls what is due; comes back by itself for the rest."""
        while self._queue:
            at_s, send = self._queue[0]
            wait_s = at_s - self._clock()
            if wait_s > _EARLY_S:
                if self._timer is None:
                    self._timer = self._loop.call_later(wait_s, self._fire)
                return
            self._queue.popleft()
            send()

    def stop(self) -> None:
        """Nothing is sent any more."""
        self._queue.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self._timer = None
        self.pump()
