"""One chart of a report."""

from dataclasses import dataclass

from loadgen.report.traces import Figure


@dataclass(frozen=True)
class Chart:
    """One figure with its title and the line that says what it shows."""

    key: str
    title: str
    shows: str
    figure: Figure
    wide: bool = False

    @property
    def many(self) -> bool:
        """True if the legend needs several rows."""
        return sum(bool(trace.get("showlegend", True)) for trace in self.figure["data"]) > 4
