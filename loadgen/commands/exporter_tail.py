"""The requests of a run that grows: counted as their lines come, so that a look each second stays cheap."""

import bisect
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadgen.store.codec import decode
from loadgen.store.model import CellKey
from loadgen.store.requests import StoredRequest

BUCKETS: dict[str, tuple[float, ...]] = {
    # A quarter apart from 0.2 ms: a fast decode takes 1 ms a token, and vLLM's own first bucket ends at 10 ms.
    "loadgen_tpot_seconds": tuple(round(0.0002 * 1.25**n, 6) for n in range(32)),
    "loadgen_ttft_seconds": tuple(round(0.001 * 1.5**n, 5) for n in range(24)),
    "loadgen_e2e_seconds": tuple(round(0.01 * 1.5**n, 4) for n in range(20)),
}
BLOCK = 4 * 2**20
"""Bytes read at one look: a long run that is seen for the first time is taken in over several looks."""

Key = tuple[str, str, str]
"""Profile, workload, concurrency."""


@dataclass
class Counts:
    """One histogram."""

    bounds: tuple[float, ...]
    counts: list[int] = field(init=False)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        """Counts one observation."""
        self.counts[bisect.bisect_left(self.bounds, value)] += 1
        self.total += value

    def cumulative(self) -> list[tuple[str, float]]:
        """(upper bound, observations up to it), +Inf last."""
        rows, running = [], 0
        for bound, count in zip([*map(str, self.bounds), "+Inf"], self.counts, strict=True):
            running += count
            rows.append((bound, float(running)))
        return rows


@dataclass
class RequestTail:
    """What requests.jsonl holds so far."""

    path: Path
    outcomes: dict[tuple[Key, str, str], int] = field(default_factory=lambda: defaultdict(int))
    """(key, phase, outcome) → requests."""
    tokens: dict[Key, int] = field(default_factory=lambda: defaultdict(int))
    histograms: dict[str, dict[Key, Counts]] = field(default_factory=lambda: {name: {} for name in BUCKETS})
    last_cell: CellKey | None = None
    _offset: int = 0

    def expect(self, keys: Iterable[Key]) -> None:
        """Counts these from 0: a series that begins with its first observation has no rate for it."""
        for key in keys:
            self.outcomes[key, "measure", "ok"] += 0
            self.tokens[key] += 0
            for name, histograms in self.histograms.items():
                histograms.setdefault(key, Counts(BUCKETS[name]))

    def look(self) -> None:
        """Counts the lines that have come since the last look."""
        for line in self._new_lines():
            try:
                stored = decode(line, StoredRequest)
            except ValueError:
                continue  # one line of another version does not hide the rest
            self._count(stored)

    def _new_lines(self) -> Iterator[bytes]:
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                block = file.read(BLOCK)
        except OSError:
            return
        whole = block.rfind(b"\n") + 1
        self._offset += whole
        yield from block[:whole].splitlines()

    def _count(self, stored: StoredRequest) -> None:
        cell, record = stored.cell, stored.record
        key = (cell.profile, cell.condition.workload, str(cell.level))
        self.last_cell = cell
        self.outcomes[key, stored.phase, str(record.outcome)] += 1
        self.tokens[key] += record.output_tokens
        if stored.phase != "measure" or record.outcome != "ok":
            return
        times = (record.tpot_s, record.ttft_s, record.e2e_s)
        for name, value in zip(BUCKETS, times, strict=True):
            if value is not None:
                self.histograms[name].setdefault(key, Counts(BUCKETS[name])).add(value)


def read_summary(path: Path) -> dict[str, Any] | None:
    """A run's summary.json; None if it is missing, torn or of another schema."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("schema") == 1 else None
