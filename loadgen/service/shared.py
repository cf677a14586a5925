"""What all routes share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from prometheus_client import CollectorRegistry

from loadgen.service.model import RunRow
from loadgen.service.problems import Problem
from loadgen.service.queue import SweepQueue
from loadgen.service.rows import Rows
from loadgen.service.runsfolder import RunsFolder
from loadgen.service.settings import Settings


@dataclass
class Shared:
    """The parts of one service."""

    settings: Settings
    runs: RunsFolder
    rows: Rows
    queue: SweepQueue
    registry: CollectorRegistry
    stopping: Callable[[], bool]
    streams: set[object] = field(default_factory=set)
    """Event streams that are open now."""

    def row(self, name: str) -> RunRow:
        """The run's row with what only this process knows of it."""
        return self.with_queue(self.rows.row(name))

    def with_queue(self, row: RunRow) -> RunRow:
        """The row with its state and place in the queue."""
        row.state, row.queue_position = self.queue.state(row.run, row.state)
        return row


def _shared(request: Request) -> Shared:
    found: Shared = request.app.state.shared
    return found


BEARER = Depends(HTTPBearer(auto_error=False, description="LOADGEN_TOKEN, if the service was started with one."))
"""For the API's description alone: the guard has looked at the token before any route is reached."""
SharedParts = Annotated[Shared, Depends(_shared)]


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that may refuse with these statuses, beside those of the guard."""
    words = {
        400: "the body is no JSON",
        401: "a token is needed",
        403: "wrong Host or Origin",
        404: "there is no such run",
        409: "not in this state",
        413: "the body is too large",
        422: "input that is refused",
        429: "the queue is full",
        503: "not now",
    }
    return {s: {"model": Problem, "description": words[s]} for s in sorted({401, 403, 413, *statuses})}
