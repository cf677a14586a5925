"""The client's own health: did it keep up, and what else took the machine."""

import asyncio
import cmath
import math
import resource
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loadgen.clock import now_s

LAG_PERIOD_S = 0.02
"""Each look wakes the loop up, which costs as much as an event: more often would show in the client's own CPU time."""
LAG_LIMIT_S = 0.010
"""A p99 loop lag above this blurs stamps: the cell is client-bound (case C57)."""
CPU_LIMIT = 0.9
ZERO_GAP_LIMIT = 0.2
"""Above this share of coalesced events a median chunk gap means nothing (case C08)."""


class LagSampler:
    """Measures how late the event loop runs a timer. In a window of 2.5 s the p99 is the second worst of 125 samples,
    so that one hiccup of a shared machine voids no cell.
    """

    def __init__(self) -> None:
        self._times_s: list[float] = []
        self._lags_s: list[float] = []
        self._due_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Starts sampling on the running loop."""
        self._due_s = now_s() + LAG_PERIOD_S
        self._timer = asyncio.get_running_loop().call_later(LAG_PERIOD_S, self._tick)

    def stop(self) -> None:
        """Ends sampling."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def p99_s(self, open_s: float, close_s: float) -> float:
        """The 99th percentile (nearest rank above) of the lags between two times; 0.0 without a sample.

        A timer that is still overdue at `close_s` counts with its lag so far.
        """
        first, last = bisect_left(self._times_s, open_s), bisect_left(self._times_s, close_s)
        lags = self._lags_s[first:last]
        if self._timer is not None and close_s > self._due_s:
            lags = [*lags, close_s - self._due_s]
        if not lags:
            return 0.0
        return sorted(lags)[math.ceil(0.99 * len(lags)) - 1]

    def _tick(self) -> None:
        now = now_s()
        self._times_s.append(now)
        self._lags_s.append(max(0.0, now - self._due_s))
        self._due_s = now + LAG_PERIOD_S
        self._timer = asyncio.get_running_loop().call_later(LAG_PERIOD_S, self._tick)


def cpu_seconds() -> float:
    """User and system CPU seconds of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def lockstep(ends_s: Sequence[float], period_s: float) -> float:
    """0 = request ends are spread evenly over the requests' duration, 1 = all end together.

    The length of the mean resultant of the ends as phases of `period_s` (the mean duration), corrected for its bias
    at small n (Mardia & Jupp, Directional Statistics, 2000, chapter 2). 0 below three ends.
    """
    n = len(ends_s)
    if n < 3 or period_s <= 0:
        return 0.0
    mean = sum(cmath.exp(2j * math.pi * (end / period_s)) for end in ends_s) / n
    unbiased = (n * abs(mean) ** 2 - 1) / (n - 1)
    return math.sqrt(min(1.0, max(0.0, unbiased)))


@dataclass(frozen=True)
class CpuTimes:
    """The machine's CPU time so far, in the kernel's ticks, summed over its cores."""

    total: int
    steal: int
    """Time that the hypervisor gave to others."""


def read_cpu_times(path: Path = Path("/proc/stat")) -> CpuTimes | None:
    """The machine's CPU times; None where the kernel does not tell."""
    try:
        fields = path.read_text(encoding="ascii").split("\n", 1)[0].split()
    except OSError:
        return None
    # user nice system idle iowait irq softirq steal; guest times are part of user
    if len(fields) < 9 or fields[0] != "cpu":
        return None
    ticks = [int(value) for value in fields[1:9]]
    return CpuTimes(total=sum(ticks), steal=ticks[7])


def steal_share(before: CpuTimes | None, after: CpuTimes | None) -> float | None:
    """Share of the machine's CPU time between two readings that the hypervisor took; None if unknown."""
    if before is None or after is None or after.total <= before.total:
        return None
    return (after.steal - before.steal) / (after.total - before.total)
