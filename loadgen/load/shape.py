"""Load shapes, and what a load run gives back."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum

from loadgen.load.record import RequestRecord


@dataclass(frozen=True)
class ClosedLoop:
    """`concurrency` requests in flight; each worker sends its next prompt when its last one ends.

    The window opens when all workers hold a request (and at least `settle_s` after that), and closes before drain:
    after `window_s` and at least `min_requests` ended in it, at the latest when `max_window_s` is over or the prompts
    run out.
    """

    concurrency: int
    window_s: float = 2.5
    min_requests: int = 0
    max_window_s: float = 60.0
    settle_s: float = 0.0
    spread_s: float | None = None
    """Workers start spread over this time; None takes one request duration as the warm-up saw it."""


class Arrival(StrEnum):
    """How open-loop starts are spaced."""

    CONSTANT = "constant"
    POISSON = "poisson"


@dataclass(frozen=True)
class Stage:
    """A stretch of an open loop at one rate; rate 0 is a pause."""

    duration_s: float
    rate_per_s: float


@dataclass(frozen=True)
class OpenLoop:
    """Starts follow a schedule, whatever the server does. Either `stages` (a constant rate is one stage) or `trace`.

    The window opens `settle_s` after the beginning and closes when the schedule is over; requests in flight finish.
    """

    stages: tuple[Stage, ...] = ()
    arrival: Arrival = Arrival.POISSON
    trace_s: tuple[float, ...] = ()
    """Arrival times of a trace in seconds; the first one is the beginning."""
    trace_speed: float = 1.0
    """2 replays a trace in half its time."""
    max_concurrency: int = 256
    """Requests beyond it wait in the client; that wait is `queued_s`, and stands in the times from the schedule."""
    max_starts_per_s: int | None = None
    """Guards a server against the burst of overdue starts after a stall; None lets them go at once."""
    settle_s: float = 0.0
    seed: int = 0


@dataclass(frozen=True)
class LoadProgress:
    """The state of a running load, a few times a second."""

    elapsed_s: float
    in_flight: int
    finished: int
    failed: int
    tokens_per_s: float
    phase: str
    """`ramp`, `window`, `drain`."""


@dataclass(frozen=True)
class WindowHooks:
    """Called by the load at the window's edges (the sweep scrapes `/metrics` there) and while it runs."""

    on_open: Callable[[], Awaitable[None]] | None = None
    on_close: Callable[[], Awaitable[None]] | None = None
    on_progress: Callable[[LoadProgress], None] | None = None
    on_record: Callable[[RequestRecord], None] | None = None
    """Called once per request when it has ended and was decoded; nothing measured may be lost."""


@dataclass(frozen=True)
class ClientHealth:
    """How well the client itself kept up, over the window."""

    loop_lag_p99_s: float
    cpu_share: float
    """CPU seconds of the load's processes per second: 1.0 is one full core."""
    in_flight_mean: float
    """Sum of the requests' times inside the window / window."""
    zero_gap_share: float
    """Share of token-bearing events that arrived in the same network read as the one before."""
    lockstep: float = 0.0
    """0 = request ends are spread evenly, 1 = all workers end together."""
    processes: int = 1
    """Load processes that `cpu_share` sums up; `loop_lag_p99_s` is that of the slowest one."""


@dataclass(frozen=True)
class LoadResult:
    """What one load run gave: every request, the window, and the client's own health."""

    records: tuple[RequestRecord, ...] = field(repr=False)
    """Not in the repr: asyncio.Runner forms its task's repr, result included, at each run's end."""
    window_open_s: float
    window_close_s: float
    output_tokens_in_window: float
    """Tokens that arrived in the window; requests that straddle an edge are prorated by chunk."""
    requests_ended_in_window: int
    health: ClientHealth
    interrupted: bool = False
    outcomes: dict[str, int] = field(default_factory=dict)

    @property
    def window_s(self) -> float:
        """Length of the window in seconds."""
        return self.window_close_s - self.window_open_s

    @property
    def output_tokens_per_s(self) -> float:
        """Output tokens per second in the window; 0 for an empty window."""
        return self.output_tokens_in_window / self.window_s if self.window_s > 0 else 0.0
