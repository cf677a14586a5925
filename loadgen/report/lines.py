"""Progress as lines: plain text for logs and pipes, JSON lines for scripts."""

import sys
from dataclasses import asdict
from types import TracebackType
from typing import Any, Self, TextIO

from rich.console import Console
from rich.text import Text

from loadgen.report.progress import Progress
from loadgen.report.summary import dumps
from loadgen.report.words import clean, duration, milliseconds, number
from loadgen.store.model import CellKey
from loadgen.sweep.events import (
    CellFailed,
    CellFinished,
    CellProgress,
    CellStarted,
    Notice,
    ServerProgress,
    SweepEvent,
    SweepStarted,
)

EVENT_NAMES: dict[type[Any], str] = {
    SweepStarted: "sweep_started",
    ServerProgress: "server",
    CellStarted: "cell_started",
    CellProgress: "cell_progress",
    CellFinished: "cell_finished",
    CellFailed: "cell_failed",
    Notice: "notice",
}


def cell_words(key: CellKey) -> str:
    """`ngram, code-edit, 8 in flight, repeat 1`; counts from 1 as people do."""
    session = f", session {key.session + 1}" if key.session else ""
    where = f"{clean(key.profile)}, {clean(key.condition.workload)}"
    return f"{where}, {key.level} in flight, repeat {key.repeat + 1}{session}"


class Pace:
    """Says which progress events of a cell are worth a line: one per `every_s` seconds of the cell's own time."""

    def __init__(self, every_s: float) -> None:
        self.every_s = every_s
        self._cell: CellKey | None = None
        self._last_s = 0.0

    def due(self, event: CellProgress) -> bool:
        """True at most once per `every_s` of a cell, never at its very start."""
        if event.key != self._cell:
            self._cell, self._last_s = event.key, 0.0
        if event.load.elapsed_s - self._last_s < self.every_s:
            return False
        self._last_s = event.load.elapsed_s
        return True


class LineListener:
    """Draws a sweep as lines on a console that is no terminal."""

    def __init__(self, console: Console, against: str = "baseline", every_s: float = 5.0) -> None:
        self.console = console
        self.progress = Progress(against)
        self._pace = Pace(every_s)
        self._phases: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def __call__(self, event: SweepEvent) -> None:
        """Prints the event if it is worth a line."""
        self.progress.take(event)
        line = self._line(event)
        if line:
            self.console.print(Text(line), soft_wrap=True)

    def _line(self, event: SweepEvent) -> str | None:
        """The event's line, None if it is not worth one."""
        match event:
            case CellProgress():
                return self._running(event) if self._pace.due(event) else None
            case ServerProgress():
                return self._server(event)
            case CellFinished():
                return self._finished(event)
            case _:
                return plain_line(event)

    def _running(self, event: CellProgress) -> str:
        """How the running cell does."""
        load = event.load
        rate = f"{number(load.tokens_per_s)} tokens/s, {load.in_flight} in flight"
        return f"  {cell_words(event.key)}: {load.phase} {load.elapsed_s:.0f} s, {rate}"

    def _server(self, event: ServerProgress) -> str | None:
        """A new phase of a server, or a line of waiting."""
        server = event.event
        again = self._phases.get(server.profile) == server.phase
        self._phases[server.profile] = server.phase
        return None if again and server.phase != "waiting" else server_line(event)

    def _finished(self, event: CellFinished) -> str:
        """The cell's main figures and the time left."""
        result = event.result
        figures = (
            f"{number(result.output_tokens_per_s)} tokens/s, TTFT {milliseconds(result.ttft_s.p50)} ms, "
            f"TPOT {milliseconds(result.tpot_s.p50)} ms"
        )
        count = f"[{self.progress.done}/{event.total}]"
        return f"{count} {cell_words(result.key)}: {figures}; {duration(event.remaining_s)} left"


def server_line(event: ServerProgress) -> str:
    """`server ngram: health, 12 s (detail)`."""
    server = event.event
    detail = f" ({clean(server.detail)})" if server.detail else ""
    return f"server {clean(server.profile)}: {clean(server.phase)}, {server.elapsed_s:.0f} s{detail}"


def plain_line(event: SweepEvent) -> str | None:
    """The line of an event that happens once: start, failure, notice; None for the others."""
    match event:
        case SweepStarted():
            todo = event.total_cells - event.resumed_cells
            resumed = f" ({event.resumed_cells} of {event.total_cells} stand already)" if event.resumed_cells else ""
            of = f" {clean(event.hardware)}" if event.hardware else ""
            simulated = f"SIMULATED{of}: " if event.simulated else ""
            return (
                f"{simulated}engine {clean(event.engine)} ({clean(event.engine_reason)}); {todo} cells{resumed}, "
                f"about {duration(event.estimate_s)}; into {clean(event.run_folder)}"
            )
        case CellFailed():
            return f"cell failed: {cell_words(event.key)}: {clean(event.reason)}"
        case Notice():
            return clean(event.text)
        case _:
            return None


class JsonListener:
    """Writes each event as one JSON line, `event` naming its kind; to stderr unless told otherwise."""

    def __init__(self, stream: TextIO | None = None, every_s: float = 1.0) -> None:
        self._stream = stream
        self._pace = Pace(every_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def __call__(self, event: SweepEvent) -> None:
        """Writes the event; progress inside a cell at most once per `every_s`."""
        if isinstance(event, CellProgress) and not self._pace.due(event):
            return
        # Looked up at each call, so that a redirected stderr is honoured.
        stream = self._stream or sys.stderr
        if stream is None:  # closed by the script that started us
            return
        facts = asdict(event.event if isinstance(event, ServerProgress) else event)
        facts.pop("resumed_rates", None)  # thousands of them, maybe; they stand in cells.jsonl
        stream.write(dumps({"event": EVENT_NAMES[type(event)], **facts}, indent=None) + "\n")
        stream.flush()
