"""Runs an engine core in real time. Every step has an absolute deadline: a late wake-up delays one delivery, never the
steps after it.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Protocol

from loadgen.simulator.model import EngineCore, SimRequest, StepResult

logger = logging.getLogger(__name__)


class Sink(Protocol):
    """What takes the engine's steps as they become due."""

    def deliver(self, result: StepResult, begun_s: float, due_s: float) -> None:
        """One step's outputs, at their time."""

    def late(self, lateness_s: float) -> None:
        """How much later than its deadline the last delivery came (negative: the timer fired early)."""

    def engine_died(self) -> None:
        """The core raised; nothing will be delivered any more."""


class Driver:
    """Steps a core on the event loop. Times are seconds on the monotonic clock."""

    def __init__(self, core: EngineCore, sink: Sink, clock: Callable[[], float] = time.monotonic) -> None:
        self._core = core
        self._sink = sink
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.Handle | None = None
        self._idle = True
        self.dead = False

    def submit(self, request: SimRequest, now_s: float) -> None:
        """Adds a request; an idle engine begins its next step once this turn of the loop is over.

        ValueError if the prompt does not fit the context.
        """
        self._core.add(request, now_s)
        if self._idle and not self.dead:
            self._idle = False
            # Requests that arrive in the same turn belong to the same first step, as in a real engine.
            self._timer = self._loop.call_soon(self._begin_now)

    def abort(self, request_id: str) -> None:
        """Takes a request out of the engine; unknown ids are ignored."""
        self._core.abort(request_id)

    def kill(self) -> None:
        """Ends the engine as a failed assertion in it would."""
        if not self.dead:
            self.stop()
            self.dead = True
            self._sink.engine_died()

    def stop(self) -> None:
        """No further step begins or is delivered."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin_now(self) -> None:
        self._begin(self._clock())

    def _begin(self, begun_s: float) -> None:
        try:
            result = self._core.step(begun_s)
        except Exception:
            # Whatever goes wrong inside an engine core ends the server, as with vLLM: the log has the reason.
            logger.exception("EngineCore encountered a fatal error.")
            self.kill()
            return
        if result is None:
            self._idle = True
            self._timer = None
            return
        due_s = begun_s + result.duration_s
        self._timer = self._loop.call_later(max(due_s - self._clock(), 0.0), self._deliver, result, begun_s, due_s)

    def _deliver(self, result: StepResult, begun_s: float, due_s: float) -> None:
        self._sink.late(self._clock() - due_s)
        self._sink.deliver(result, begun_s, due_s)
        if not self.dead:
            self._begin(due_s)
