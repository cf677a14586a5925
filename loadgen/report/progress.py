"""The state of a running sweep, built up from its events; the listeners draw it."""

import math
from collections import defaultdict
from dataclasses import dataclass, field

from loadgen.engines.base import EngineEvent
from loadgen.load.shape import LoadProgress
from loadgen.store.model import CellKey, CellResult, Condition
from loadgen.sweep.events import (
    CellFailed,
    CellFinished,
    CellProgress,
    CellStarted,
    ServerProgress,
    SweepEvent,
    SweepStarted,
)


@dataclass
class Progress:
    """What is known so far. `against` names the profile that speed-ups refer to."""

    against: str = "baseline"
    started: SweepStarted | None = None
    servers: dict[str, EngineEvent] = field(default_factory=dict)
    """The last event of each server that is up or on its way."""
    cell: CellKey | None = None
    load: LoadProgress | None = None
    done: int = 0
    total: int = 0
    failed: int = 0
    remaining_s: float | None = None
    _rates: dict[CellKey, float] = field(default_factory=dict)

    def take(self, event: SweepEvent) -> None:
        """Takes one event into the state."""
        match event:
            case SweepStarted():
                self.started = event
                self.total = event.total_cells
                self.done = event.resumed_cells
                self._rates = dict(event.resumed_rates)
                self.remaining_s = event.estimate_s
            case ServerProgress(event=server):
                self._server(server)
            case CellStarted():
                self.cell, self.load, self.total = event.key, None, event.total
            case CellProgress():
                self.cell, self.load = event.key, event.load
            case CellFinished():
                self._finished(event.result)
                self.total, self.remaining_s = event.total, event.remaining_s
            case CellFailed():
                self.done += 1
                self.failed += 1
                self._idle(event.key)
            case _:
                pass

    def _server(self, event: EngineEvent) -> None:
        """A stopped server is forgotten."""
        if event.phase == "stopped":
            self.servers.pop(event.profile, None)
        else:
            self.servers[event.profile] = event

    def _finished(self, result: CellResult) -> None:
        """The cell counts, and its rate goes into the speed-ups."""
        self.done += 1
        self._rates[result.key] = result.output_tokens_per_s
        self._idle(result.key)

    def _idle(self, key: CellKey) -> None:
        """No cell runs, if it was this one."""
        if self.cell == key:
            self.cell = self.load = None

    def speedups(self) -> dict[tuple[Condition, str], dict[int, float]]:
        """(condition, profile) → level → geometric mean of the paired ratios to the baseline, from the cells so far."""
        logs: dict[tuple[Condition, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
        for key, rate in list(self._rates.items()):  # the display reads from its own thread
            if key.profile == self.against or rate <= 0:
                continue
            partner = CellKey(self.against, key.condition, key.level, key.repeat, key.session)
            base = self._rates.get(partner, 0.0)
            if base > 0:
                logs[key.condition, key.profile][key.level].append(math.log(rate / base))
        return {
            where: {level: math.exp(sum(values) / len(values)) for level, values in sorted(levels.items())}
            for where, levels in sorted(logs.items())
        }
