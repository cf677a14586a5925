"""Charts over the whole run in the order of measurement: slow phases and full caches show here."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from loadgen.metrics.model import GaugeSample
from loadgen.report.chart import Chart
from loadgen.report.traces import Figure, Series, baseline_style, layout_of, trace_of
from loadgen.report.words import finite, number, percent
from loadgen.store.model import CellResult

# More points than this cannot be told apart on a screen.
MAX_POINTS = 1500
# A longer pause between two samples is a server start or a break, not a measurement.
PAUSE_S = 5.0
BIN_S = 0.5

Samples = Sequence[tuple[str, GaugeSample]]
Point = tuple[str, float, float, str]
"""(profile, x, y, hover)."""


def timelines(series: list[Series], cells: Sequence[CellResult], gauges: Samples, against: str) -> list[Chart]:
    """The run's charts over time; those without a point are left out."""
    made = [
        _chart(
            "tokens",
            "Token rate in the windows",
            "Output tokens per second as the client saw them, in half seconds, cells in the order of measurement: "
            "each step is a level; a dip inside a step is a slow phase.",
            "tokens/s",
            list(_token_points(cells)),
            series,
            against,
        ),
        _chart(
            "running",
            "Requests in the server",
            "Requests that the server says it runs; it should follow the level. Pauses are cut out.",
            "running",
            list(_gauge_points(gauges, lambda s: s.running, lambda y: f"{number(y)} running")),
            series,
            against,
        ),
        _chart(
            "kv",
            "KV cache use",
            "Share of the KV cache in use; near 100 % the server preempts and the figures mean something else.",
            "KV cache",
            list(_gauge_points(gauges, lambda s: s.kv_cache_usage, lambda y: percent(y, 1))),
            series,
            against,
        ),
    ]
    return [chart for chart in made if chart.figure["data"]]


def _token_points(cells: Sequence[CellResult]) -> Iterator[Point]:
    """One point per half second of each window."""
    at = 0.0
    for cell in sorted(cells, key=lambda c: c.order):
        where = f"{cell.key.level} in flight, repeat {cell.key.repeat + 1}"
        for tokens in cell.half_second_tokens:
            rate = finite(tokens / BIN_S)
            if rate is not None:
                yield cell.key.profile, at, rate, f"{where}: {number(rate)} tokens/s"
            at += BIN_S


def _gauge_points(
    gauges: Samples, of: Callable[[GaugeSample], float | None], words: Callable[[float], str]
) -> Iterator[Point]:
    """One point per sample; the clock may jump between a run and its resumption, so pauses are cut."""
    at = 0.0
    before: float | None = None
    for profile, sample in gauges:
        if before is not None:
            step = sample.at_s - before
            at += step if 0 <= step <= PAUSE_S else BIN_S
        before = sample.at_s
        value = finite(of(sample))
        if value is not None:
            yield profile, at, value, words(value)


def _chart(
    key: str, title: str, shows: str, y_title: str, points: list[Point], series: list[Series], against: str
) -> Chart:
    """One chart with a trace per profile, broken where another profile ran in between."""
    points = points[:: max(1, -(-len(points) // MAX_POINTS))]
    looks: dict[str, Figure] = {one.profile.profile: trace_of(one) for one in series}
    looks.setdefault(against, baseline_style(against))
    data: list[Figure] = []
    for name, look in looks.items():
        x: list[float | None] = []
        y: list[float | None] = []
        text: list[str] = []
        gap = False
        for profile, at, value, hover in points:
            if profile != name:
                gap = bool(x)
                continue
            if gap:
                x.append(None)
                y.append(None)
                text.append("")
                gap = False
            x.append(round(at, 2))
            y.append(round(value, 4))
            text.append(hover)
        if x:
            line: dict[str, Any] = look["line"] | {"width": 1.4}
            data.append(look | {"x": x, "y": y, "text": text, "mode": "lines", "line": line})
    layout = layout_of([1], y_title, {"rangemode": "tozero"})
    if key == "kv":
        layout["yaxis"]["tickformat"] = ".2~%"
    layout["xaxis"] = {"title": {"text": "measured time, s"}, "rangemode": "tozero"}
    layout["hovermode"] = "closest"
    return Chart(key, title, shows, {"data": data, "layout": layout}, wide=True)
