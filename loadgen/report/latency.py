"""Latency beyond the median: the tails over load, and whole distributions level by level."""

from collections.abc import Sequence
from statistics import median

import numpy as np

from loadgen.load.summary import Distribution
from loadgen.report.chart import Chart
from loadgen.report.detail import Latencies, Place
from loadgen.report.traces import Figure, Series, baseline_style, layout_of, trace_of, x_of
from loadgen.report.words import finite, number
from loadgen.store.model import CellResult, Condition

# Shares at which a distribution is drawn: enough for its shape, few enough for a small file.
SHARES = (0.0, 0.01, 0.025, 0.05, *(round(0.1 * i, 1) for i in range(1, 10)), 0.95, 0.975, 0.99, 1.0)
FEW = 5
TITLES = {"ttft": "Time to first token", "tpot": "Time per output token"}


def tail(series: list[Series], cells: Sequence[CellResult], condition: Condition, against: str, what: str) -> Chart:
    """p99 of TTFT or TPOT over the level: the median over the repeats of each cell's p99."""
    data: list[Figure] = []
    levels: set[int] = set()
    for name, look in looks(series, against).items():
        found: dict[int, list[Distribution]] = {}
        for cell in cells:
            if cell.key.condition == condition and cell.key.profile == name:
                found.setdefault(cell.key.level, []).append(getattr(cell, f"{what}_s"))
        rows = []
        for level, spread in sorted(found.items()):
            values = [v for d in spread if (v := finite(d.p99)) is not None]
            if values:
                rows.append((level, 1000 * median(values), sum(d.n for d in spread)))
        levels.update(level for level, _, _ in rows)
        data.append(
            look
            | {
                "x": [x_of(level) for level, _, _ in rows],
                "y": [y for _, y, _ in rows],
                "text": [f"{level} in flight: {number(y)} ms, {n} requests" for level, y, n in rows],
            }
        )
    layout = layout_of(sorted(levels) or [1], f"{what.upper()} p99, ms", {"rangemode": "tozero"})
    shows = "The slowest 1 % of requests: the median over the repeats of each cell's p99, voided cells included."
    return Chart(f"{what}99", f"{TITLES[what]}, slowest 1 %", shows, {"data": data, "layout": layout})


def spread(
    series: list[Series], latencies: dict[Place, Latencies], condition: Condition, against: str, what: str
) -> Chart | None:
    """The cumulative distribution of TTFT or TPOT, a level at a time by a menu; None below FEW requests anywhere."""
    styles = looks(series, against)
    levels = sorted({level for c, name, level in latencies if c == condition and name in styles})
    data: list[Figure] = []
    of_level: list[int] = []
    for level in levels:
        for name, look in styles.items():
            values = getattr(latencies.get((condition, name, level), Latencies()), f"{what}_s")
            if len(values) < FEW:
                continue
            quantiles = [1000 * float(q) for q in np.quantile(np.array(values, dtype=float), SHARES)]
            points = {"x": [round(q, 4) for q in quantiles], "y": list(SHARES)}
            hover = f"%{{y:.1%}} of {len(values)} requests within %{{x:.1f}} ms"
            data.append(look | points | {"mode": "lines", "hovertemplate": hover})
            of_level.append(level)
    shown = sorted(set(of_level))
    if not shown:
        return None
    first = shown[len(shown) // 2]
    for trace, level in zip(data, of_level, strict=True):
        trace["visible"] = level == first
    layout = layout_of([1], "share of requests", {"tickformat": ".0%", "range": [0, 1.02]})
    layout["xaxis"] = {"title": {"text": f"{what.upper()}, ms"}, "rangemode": "tozero"}
    layout["hovermode"] = "closest"
    layout["updatemenus"] = [_menu(shown, of_level, first)]
    layout["margin"]["t"] = 46
    shows = "Share of requests that were at most so slow, all repeats together; choose the level in the menu."
    return Chart(f"{what}spread", f"{TITLES[what]}, all requests", shows, {"data": data, "layout": layout})


def looks(series: list[Series], against: str) -> dict[str, Figure]:
    """Profile name → its trace without points, the baseline first."""
    return {against: baseline_style(against)} | {one.profile.profile: trace_of(one) for one in series}


def _menu(levels: list[int], of_level: list[int], first: int) -> Figure:
    """A menu that shows one level's traces."""
    return {
        "type": "dropdown",
        "x": 0,
        "xanchor": "left",
        "y": 1.02,
        "yanchor": "bottom",
        "active": levels.index(first),
        "buttons": [
            {"label": f"{level} in flight", "method": "restyle", "args": ["visible", [o == level for o in of_level]]}
            for level in levels
        ],
    }
