"""A sweep that adds the cells which the analysis asks for (`--refine`)."""

from dataclasses import dataclass, field

from loadgen.analysis.next_cells import level_limit, next_cells
from loadgen.clock import now_s
from loadgen.store.codec import builtins, convert
from loadgen.store.folder import RunFolder
from loadgen.store.model import CellKey
from loadgen.sweep.estimate import TimeLeft
from loadgen.sweep.events import Listener, Notice

EVENT = "refine"
"""One event a look: which cells it asked for. With the cells on disk it is all that a resumed run needs."""


@dataclass
class Refiner:
    """Asks for more cells, look by look, until the interval is narrow, the looks are used up, or time is."""

    folder: RunFolder
    listener: Listener
    half_width: float
    looks: int
    """How often the data are looked at, the last time included; the error rates count on it."""
    budget_s: float | None = None
    """Refining ends when its next cells would end later than this after the sweep's start."""
    started_s: float = field(default_factory=now_s)
    _resumed: bool = False

    def asked(self) -> tuple[CellKey, ...]:
        """Every cell that any look has asked for, in order."""
        return tuple(key for look in self._looks() for key in look)

    def more(self, time_left: TimeLeft) -> tuple[CellKey, ...]:
        """The cells to measure now; empty when refining is over, with one sentence to the listener where it is cut."""
        asked = self._looks()
        there = {cell.key for cell in self.folder.cells()}
        if not self._resumed:
            self._resumed = True
            missing = tuple(key for look in asked for key in look if key not in there)
            if missing:
                return missing
        if 1 + len(asked) >= self.looks:
            self.listener(Notice(f"Refining ends after {self.looks} looks: the interval's error rate counts on that."))
            return ()
        keys = next_cells(
            self.folder.manifest(),
            self.folder.cells(),
            highest=level_limit([_max_num_seqs(server.effective) for server in self.folder.servers()]),
            wanted=self.half_width,
            looks=self.looks,
        )
        if not keys or self._too_late(keys, time_left):
            return ()
        levels = ", ".join(map(str, sorted({key.level for key in keys})))
        text = f"look {1 + len(asked)}: {len(keys)} more cells at {levels} requests in flight"
        self.folder.append_event(EVENT, text, cells=[builtins(key) for key in keys])
        self.listener(Notice(f"Refining, {text}."))
        return keys

    def _too_late(self, keys: tuple[CellKey, ...], time_left: TimeLeft) -> bool:
        if self.budget_s is None:
            return False
        left = self.budget_s - (now_s() - self.started_s)
        needed = time_left.remaining_s(keys)
        if needed <= left:
            return False
        self.listener(
            Notice(f"Refining ends here: its next {len(keys)} cells take about {needed:.0f} s, past --budget.")
        )
        return True

    def _looks(self) -> list[tuple[CellKey, ...]]:
        return [
            tuple(convert(key, CellKey) for key in event.details["cells"])
            for event in self.folder.events()
            if event.kind == EVENT
        ]


def _max_num_seqs(effective: dict[str, object]) -> int:
    """0 where the server does not say."""
    told = effective.get("max_num_seqs", effective.get("max-num-seqs"))
    return told if isinstance(told, int) and not isinstance(told, bool) else 0
