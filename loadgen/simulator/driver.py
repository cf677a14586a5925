"""Runs an engine core in real time. Everything has an absolute time: when a request reaches the engine, when a step
begins, when its outputs are due. A late wake-up delays one delivery, never what comes after it.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from loadgen.simulator.core import EngineDeadError
from loadgen.simulator.model import EngineCore, SimRequest, StepResult

logger = logging.getLogger(__name__)


class Sink(Protocol):
    """What takes the engine's steps as they become due."""

    def deliver(self, result: StepResult, begun_s: float, due_s: float) -> None:
        """One step's outputs, at their time."""

    def late(self, lateness_s: float) -> None:
        """How much later than its deadline the last delivery came (negative: the timer fired early)."""

    def refused(self, request_id: str, reason: str) -> None:
        """The core cannot take this request."""

    def engine_died(self) -> None:
        """The core raised; nothing will be delivered any more."""


class Driver:
    """Steps a core on the event loop. Times are seconds on the monotonic clock."""

    def __init__(self, core: EngineCore, sink: Sink, clock: Callable[[], float] = time.monotonic) -> None:
        self._core = core
        self._sink = sink
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._coming: deque[tuple[float, SimRequest]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self.dead = False

    def submit(self, request: SimRequest, at_s: float) -> None:
        """The request reaches the engine at `at_s`, which must not lie before an earlier request's."""
        self._coming.append((at_s, request))
        if self._timer is None and not self.dead:
            self._wait(at_s, self._begin, at_s)

    def abort(self, request_id: str) -> None:
        """Takes a request out of the engine; unknown ids are ignored."""
        for entry in self._coming:
            if entry[1].request_id == request_id:
                self._coming.remove(entry)
                return
        self._core.abort(request_id)

    def kill(self) -> None:
        """Ends the engine as a failed assertion in it would."""
        if not self.dead:
            self.dead = True
            self.stop()
            self._sink.engine_died()

    def stop(self) -> None:
        """No further step begins or is delivered."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self, until_s: float, then: Callable[..., None], *arguments: object) -> None:
        self._timer = self._loop.call_later(max(until_s - self._clock(), 0.0), then, *arguments)

    def _begin(self, begun_s: float) -> None:
        """The next step, begun at `begun_s` with all requests that have reached the engine by then."""
        self._timer = None
        while self._coming and self._coming[0][0] <= begun_s:
            at_s, request = self._coming.popleft()
            try:
                self._core.add(request, at_s)
            except ValueError as error:
                self._sink.refused(request.request_id, str(error))
        try:
            result = self._core.step(begun_s)
        except EngineDeadError as error:
            logger.error("EngineCore encountered a fatal error: %s", error)
            self.kill()
            return
        except Exception:
            # Whatever goes wrong inside a core ends the server, as with vLLM: the log has the reason.
            logger.exception("EngineCore encountered a fatal error.")
            self.kill()
            return
        if result is not None:
            due_s = begun_s + result.duration_s
            self._wait(due_s, self._deliver, result, begun_s, due_s)
        elif self._coming:
            at_s = self._coming[0][0]
            self._wait(at_s, self._begin, at_s)

    def _deliver(self, result: StepResult, begun_s: float, due_s: float) -> None:
        self._sink.late(self._clock() - due_s)
        self._sink.deliver(result, begun_s, due_s)
        if not self.dead:
            self._begin(due_s)
