"""Progress events: the sweep says what happens, a listener draws it."""

from collections.abc import Callable
from dataclasses import dataclass

from loadgen.engines.base import EngineEvent
from loadgen.load.shape import LoadProgress
from loadgen.store.model import CellKey, CellResult


@dataclass(frozen=True)
class SweepStarted:
    """The plan is fixed: what will be measured, and where it goes."""

    run_folder: str
    engine: str
    engine_reason: str
    simulated: bool
    total_cells: int
    resumed_cells: int
    estimate_s: float
    resumed_rates: tuple[tuple[CellKey, float], ...] = ()
    """Output tokens per second of each cell that stands already, for what is shown of the speed-ups."""
    hardware: str = ""
    """What is simulated: the preset's name."""


@dataclass(frozen=True)
class ServerProgress:
    """A server starts or stops."""

    event: EngineEvent


@dataclass(frozen=True)
class CellStarted:
    """A cell begins (warm-up first)."""

    key: CellKey
    index: int
    total: int


@dataclass(frozen=True)
class CellProgress:
    """A cell runs."""

    key: CellKey
    load: LoadProgress


@dataclass(frozen=True)
class CellFinished:
    """A cell stands in the run folder."""

    result: CellResult
    index: int
    total: int
    elapsed_s: float
    remaining_s: float
    """Time left for the whole matrix, from the cells so far."""


@dataclass(frozen=True)
class CellFailed:
    """A cell could not be measured; the run goes on."""

    key: CellKey
    reason: str


@dataclass(frozen=True)
class Notice:
    """One sentence for the user."""

    text: str


SweepEvent = SweepStarted | ServerProgress | CellStarted | CellProgress | CellFinished | CellFailed | Notice
Listener = Callable[[SweepEvent], None]
