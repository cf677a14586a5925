"""How long cells take: from what the engine is before anything was measured, then from the cells so far."""

import math
from dataclasses import dataclass, replace

from loadgen.store.model import CellKey
from loadgen.sweep.plan import CellShape, SweepPlan

OVERHEAD_S = 0.6
"""Scrapes and idle waits of one cell (simulator, 2 cores)."""
PROMPT_S = 1e-3
"""Making one prompt."""
MOST_PROMPTS = 20_000
_TYPICAL_TOKENS = 110
"""An answer of our workloads that ends by itself, unless its cap comes first."""


@dataclass(frozen=True)
class Speed:
    """What is taken for a server before it was measured: a request of n tokens with C in flight lasts
    n × (token_s + C × crowd_s) seconds.
    """

    token_s: float
    crowd_s: float
    start_s: float
    """Until it answers."""


SIMULATOR = Speed(0.0035, 0.0005, 2.0)
"""Measured at 1 to 512 in flight on two busy cores (preset rtx5090-8b-int4): 0.5 ms of CPU a token, server and client
together, decide from about 16 in flight on.
"""
GPU = Speed(0.012, 0.0001, 90.0)
"""An 8B on one GPU, roughly; its start loads weights and captures graphs."""
CPU = Speed(0.03, 0.01, 60.0)
"""vLLM's CPU build with a small model on few cores, roughly."""


def speed_of(*, simulated: bool, slow: bool, running: bool) -> Speed:
    """The prior for an engine; `running` servers are not started, only asked."""
    found = SIMULATOR if simulated else CPU if slow else GPU
    return replace(found, start_s=1.0) if running else found


@dataclass(frozen=True)
class _Seen:
    """One measured cell."""

    key: CellKey
    request_s: float
    seconds: float | None
    """None for a cell of an earlier process: how long it took is not known any more."""


class TimeLeft:
    """Learns how long requests and cells last, by profile, condition and level."""

    def __init__(self, shape: CellShape, speed: Speed = SIMULATOR, tokens: int = _TYPICAL_TOKENS) -> None:
        self.shape = shape
        self.speed = speed
        self.tokens = tokens
        self._seen: list[_Seen] = []
        self._starts_s: list[float] = []

    @classmethod
    def of(cls, plan: SweepPlan, speed: Speed) -> "TimeLeft":
        """For a plan on a server of that speed."""
        cap = plan.max_tokens or 256
        return cls(plan.shape, speed, cap if plan.sampling.ignore_eos else min(cap, _TYPICAL_TOKENS))

    def learn(self, key: CellKey, request_s: float | None, seconds: float | None) -> None:
        """One cell stands: how long its requests took (None if none ended) and itself, None if an earlier process
        measured it.
        """
        if request_s:
            self._seen.append(_Seen(key, request_s, seconds))

    def learn_start(self, seconds: float) -> None:
        """A server came up."""
        self._starts_s.append(seconds)

    def start_s(self) -> float:
        """Seconds that one server's start will take."""
        return sum(self._starts_s) / len(self._starts_s) if self._starts_s else self.speed.start_s

    def cell_s(self, key: CellKey) -> float:
        """Seconds that a cell will take: as its like took; else by the cell's parts, with requests as long as those of
        the nearest measured level make likely, and off by as much as that level's cells were.
        """
        timed = [seen for seen in self._seen if seen.seconds is not None]
        alike = [s.seconds for s in timed if replace(s.key, repeat=0, session=0) == replace(key, repeat=0, session=0)]
        if alike:
            return math.fsum(seconds for seconds in alike if seconds is not None) / len(alike)
        guess = self._parts_s(key, self._request_s(key))
        nearest = self._nearest(key, timed)
        off = [s.seconds / self._parts_s(s.key, s.request_s) for s in nearest if s.seconds is not None]
        return guess * (math.fsum(off) / len(off) if off else 1.0)

    def remaining_s(self, keys: tuple[CellKey, ...], starts: int = 0) -> float:
        """Seconds that these cells will take, and so many starts of servers one after the other."""
        return math.fsum(self.cell_s(key) for key in keys) + starts * self.start_s()

    def _request_s(self, key: CellKey) -> float:
        """Seconds of one request: what is taken for the server, times how far off that was nearby."""
        nearest = self._nearest(key, self._seen)
        off = [s.request_s / self._prior_s(s.key.level) for s in nearest]
        return self._prior_s(key.level) * (math.fsum(off) / len(off) if off else 1.0)

    def _prior_s(self, level: int) -> float:
        return self.tokens * (self.speed.token_s + level * self.speed.crowd_s)

    def _nearest(self, key: CellKey, seen: list[_Seen]) -> list[_Seen]:
        """The cells of the nearest measured level: of the same profile and condition, else of the condition, else of
        any.
        """
        for alike in (
            [s for s in seen if (s.key.profile, s.key.condition) == (key.profile, key.condition)],
            [s for s in seen if s.key.condition == key.condition],
            seen,
        ):
            if alike:
                level = min((s.key.level for s in alike), key=lambda level: abs(math.log(level / key.level)))
                return [s for s in alike if s.key.level == level]
        return []

    def _parts_s(self, key: CellKey, request_s: float) -> float:
        """Prompts, warm-up, workers that start spread over one request, settling, window, drain."""
        shape, level = self.shape, key.level
        # The first time a level is warmed up with whole requests, later with short ones.
        warm_up_s = request_s if key.repeat == 0 else 0.2 * request_s
        spread_s = request_s * (level - 1) / level
        settle_s = shape.settle_for(level, request_s)
        least = max(shape.min_requests, shape.requests_per_worker * level)
        wanted_s = max(shape.window_s, shape.window_requests * request_s, request_s * math.ceil(least / level))
        window_s = min(wanted_s, max(shape.window_s, shape.max_window_s))
        prompts = level + min(2 * level * math.ceil((window_s + 2 * request_s) / max(request_s, 0.01)), MOST_PROMPTS)
        drain_s = 0.8 * request_s
        return OVERHEAD_S + PROMPT_S * prompts + warm_up_s + settle_s + spread_s + window_s + drain_s
