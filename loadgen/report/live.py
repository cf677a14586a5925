"""The one live display of a sweep; lines where there is no terminal."""

import contextlib
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from loadgen.clock import now_s
from loadgen.report.lines import JsonListener, LineListener, cell_words, plain_line
from loadgen.report.progress import Progress
from loadgen.report.words import clean, duration, number
from loadgen.sweep.events import CellFinished, ServerProgress, SweepEvent, SweepStarted

# All listeners from one place.
__all__ = ["JsonListener", "LineListener", "LiveListener"]

REDRAWS_PER_S = 4


class LiveListener:
    """A context manager and listener: one display that is redrawn in place and gone when the sweep ends.

    On a console that is no terminal it is a LineListener. Leaving it, also by an exception, restores the terminal.
    """

    def __init__(self, console: Console, against: str = "baseline") -> None:
        self.console = console
        self.progress = Progress(against)
        self._lines = None if console.is_terminal and not console.is_dumb_terminal else LineListener(console, against)
        self._live: Live | None = None
        self._server_seen_s: dict[str, float] = {}
        self._remaining_seen_s = now_s()

    def __enter__(self) -> Self:
        if self._lines is None:
            self._live = Live(
                get_renderable=self.picture,
                console=self.console,
                refresh_per_second=REDRAWS_PER_S,
                transient=True,
                vertical_overflow="ellipsis",
            )
            self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            with contextlib.suppress(OSError, SystemExit):  # the terminal may be gone
                self._live.stop()
            self._live = None

    def __call__(self, event: SweepEvent) -> None:
        """Takes the event into the display; what must stay readable is printed above it."""
        if self._lines is not None:
            self._lines(event)
            return
        self.progress.take(event)
        if isinstance(event, ServerProgress):
            self._server_seen_s[event.event.profile] = now_s() - event.event.elapsed_s
        if isinstance(event, (SweepStarted, CellFinished)):
            self._remaining_seen_s = now_s()
        line = plain_line(event)
        if line:
            self.console.print(Text(line))

    def picture(self) -> RenderableType:
        """The display as it stands: servers, the running cell, the matrix, the speed-ups so far."""
        parts = [*self._servers(), self._cell(), self._matrix()]
        speedups = self._speedups()
        if speedups is not None:
            parts += [Text(""), speedups]
        return Group(*parts)

    def _servers(self) -> list[RenderableType]:
        """One line per server; the seconds run on while it starts."""
        lines: list[RenderableType] = []
        for name, event in list(self.progress.servers.items()):
            ready = event.phase == "ready"
            seconds = event.elapsed_s if ready else now_s() - self._server_seen_s.get(name, now_s())
            detail = f"  {clean(event.detail)}" if event.detail else ""
            line = Text.assemble("server ", (clean(name), "bold"), f"  {clean(event.phase)}, {seconds:.0f} s{detail}")
            line.no_wrap, line.overflow = True, "ellipsis"
            lines.append(line)
        return lines

    def _cell(self) -> RenderableType:
        """The running cell, or what is waited for."""
        key, load = self.progress.cell, self.progress.load
        if key is None:
            return Text("no cell runs", style="dim")
        line = Text.assemble("cell   ", (cell_words(key), "bold"), no_wrap=True, overflow="ellipsis")
        if load is None:
            line.append("\n       warm-up")
            return line
        failed = f", {load.failed} failed" if load.failed else ""
        line.append(
            f"\n       {load.phase} {load.elapsed_s:.1f} s: {number(load.tokens_per_s)} tokens/s, "
            f"{load.in_flight} in flight, {load.finished} finished{failed}"
        )
        return line

    def _matrix(self) -> RenderableType:
        """A bar for the whole matrix with the time that is left."""
        done, total = self.progress.done, self.progress.total
        left = self.progress.remaining_s
        if left is not None:
            left = max(0.0, left - (now_s() - self._remaining_seen_s))
        failed = f", {self.progress.failed} failed" if self.progress.failed else ""
        grid = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=max(total, 1), completed=done, width=max(10, min(40, self.console.width - 45)))
        grid.add_row("matrix", bar, f"{done}/{total} cells{failed}, {duration(left)} left")
        return grid

    def _speedups(self) -> RenderableType | None:
        """The speed-ups so far, a row per profile and condition; None before the first pair."""
        found = self.progress.speedups()
        if not found:
            return None
        levels = sorted({level for row in found.values() for level in row})
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True)
        table.add_row(Text("speed-up so far", style="bold"), *(Text(str(level), style="dim") for level in levels))
        for (condition, profile), row in found.items():
            cells = [_ratio(row.get(level)) for level in levels]
            table.add_row(f"{clean(profile)}, {clean(condition.workload)}", *cells)
        return table


def _ratio(value: float | None) -> Text:
    """A ratio in green above 1 and red below, the number itself says the same."""
    if value is None:
        return Text("-", style="dim")
    return Text(f"{value:.2f}×", style="green" if value > 1 else "red")
