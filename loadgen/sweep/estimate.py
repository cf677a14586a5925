"""Time left, from the cells so far."""

from dataclasses import dataclass

from loadgen.store.model import CellKey
from loadgen.sweep.plan import CellShape

OVERHEAD_S = 1.6
"""Warm-up, start-up spread, drain and idle waits of one cell, before anything was measured (simulator, 2 cores)."""


@dataclass
class TimeLeft:
    """Learns how long cells last, by profile and level."""

    shape: CellShape

    def __post_init__(self) -> None:
        self._seen: dict[tuple[str, int], list[float]] = {}
        self._all: list[float] = []

    def learn(self, key: CellKey, seconds: float) -> None:
        """One cell ended."""
        self._seen.setdefault((key.profile, key.level), []).append(seconds)
        self._all.append(seconds)

    def cell_s(self, key: CellKey) -> float:
        """Seconds that a cell will take: as its like took, else as all took, else as planned."""
        seen = self._seen.get((key.profile, key.level)) or self._all
        if seen:
            return sum(seen) / len(seen)
        return self.shape.window_s + OVERHEAD_S

    def remaining_s(self, keys: tuple[CellKey, ...]) -> float:
        """Seconds that these cells will take."""
        return sum(self.cell_s(key) for key in keys)
