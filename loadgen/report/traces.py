"""Plotly traces and layouts as plain dicts: how a profile and the baseline look in every chart.

The x axis is log2 of the level on a linear axis, so that levels stand evenly and shapes need no second scale.
Fonts, grid and page colours follow the theme in the page's script; here stand only the series' own colours.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from loadgen.analysis.model import Estimate, LevelFinding, ProfileFinding
from loadgen.report.words import clean, finite, number, value_of

Figure = dict[str, Any]

# Mid tones with 3:1 contrast on the light and on the dark page; dash and symbol tell the series apart without colour.
COLOURS = ("#2f7fd6", "#d2691e", "#1f9a6b", "#b25aa0", "#8f7d1a", "#cf4f57", "#2a95a8")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "star", "hexagon", "triangle-down")
BASELINE_COLOUR = "#7d8590"
# A neutral tone that shows on both pages.
TEXT_TONE = "#8a93a0"
# Narrower than this (in log2) two tick labels touch on a phone.
MIN_TICK_GAP = 0.4


@dataclass(frozen=True)
class Series:
    """How one profile looks in every chart."""

    profile: ProfileFinding
    index: int

    @property
    def name(self) -> str:
        """The profile's name, safe in Plotly's pseudo-HTML."""
        return label(self.profile.profile)

    @property
    def colour(self) -> str:
        """Its colour, the same in every chart."""
        return COLOURS[self.index % len(COLOURS)]

    @property
    def line(self) -> Figure:
        """Its line."""
        return {"color": self.colour, "dash": DASHES[self.index % len(DASHES)], "width": 2.2}

    @property
    def marker(self) -> Figure:
        """Its marker."""
        return {"color": self.colour, "symbol": SYMBOLS[self.index % len(SYMBOLS)], "size": 8}


def label(text: str) -> str:
    """The text with < > & as entities: Plotly reads a subset of HTML in names (C102)."""
    return clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def x_of(level: float) -> float:
    """Where a level stands on the x axis."""
    return math.log2(max(level, 1e-9))


def trace_of(one: Series) -> Figure:
    """A line with markers in the profile's look, without points yet."""
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": one.name,
        "line": one.line,
        "marker": one.marker,
        "hovertemplate": "%{text}",
    }


def lines(one: Series, value: Callable[[LevelFinding], float | None], hover: Callable[[LevelFinding], str]) -> Figure:
    """The profile's line over its valid levels."""
    rows = [r for r in one.profile.levels if r.valid and value(r) is not None]
    return trace_of(one) | {
        "x": [x_of(r.concurrency) for r in rows],
        "y": [value(r) for r in rows],
        "text": [f"{r.concurrency} in flight: {hover(r)}" for r in rows],
    }


def band(one: Series, estimate: Callable[[LevelFinding], Estimate | None]) -> Figure:
    """The area between the interval's ends, over the valid levels that have one."""
    rows: list[tuple[float, float, float]] = []
    for level in one.profile.levels:
        found = estimate(level)
        if level.valid and found and found.ci95 and all(map(math.isfinite, found.ci95)):
            rows.append((x_of(level.concurrency), *found.ci95))
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [x for x, _, _ in rows] + [x for x, _, _ in reversed(rows)],
        "y": [low for _, low, _ in rows] + [high for _, _, high in reversed(rows)],
        "fill": "toself",
        "fillcolor": faint(one.colour, 0.18),
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
        "legendgroup": one.name,
    }


def void(one: Series, value: Callable[[LevelFinding], float | None]) -> Figure:
    """Crosses at levels that carry no verdict, with the reason on hover."""
    rows = [r for r in one.profile.levels if not r.valid and value(r) is not None]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{one.name}: void",
        "x": [x_of(r.concurrency) for r in rows],
        "y": [value(r) for r in rows],
        "text": [f"{r.concurrency} in flight: void ({label(', '.join(c.name for c in r.checks))})" for r in rows],
        "marker": {"symbol": "x-thin", "size": 10, "line": {"color": one.colour, "width": 2}},
        "hovertemplate": "%{text}",
        "showlegend": False,
        "legendgroup": one.name,
    }


def error_bars(one: Series, estimate: Callable[[LevelFinding], Estimate | None]) -> Figure:
    """Asymmetric error bars for the points of `lines`."""
    up: list[float | None] = []
    down: list[float | None] = []
    for level in one.profile.levels:
        found = estimate(level)
        value = value_of(found)
        if not level.valid or found is None or value is None:
            continue
        low, high = found.ci95 or (value, value)
        up.append(finite(high - value))
        down.append(finite(value - low))
    return {
        "type": "data",
        "symmetric": False,
        "array": up,
        "arrayminus": down,
        "color": one.colour,
        "thickness": 1.2,
        "width": 3,
    }


def baseline_style(against: str) -> Figure:
    """The baseline's look."""
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": label(against),
        "line": {"color": BASELINE_COLOUR, "width": 2.2, "dash": "solid"},
        "marker": {"color": BASELINE_COLOUR, "symbol": "circle-open", "size": 8},
        "hovertemplate": "%{text}",
    }


def baseline(series: list[Series], value: Callable[[LevelFinding], float | None], against: str, unit: str) -> Figure:
    """The baseline's line: from the first profile that knows a level."""
    points: dict[int, float] = {}
    for one in series:
        for level in one.profile.levels:
            found = value(level)
            if found is not None:
                points.setdefault(level.concurrency, found)
    rows = sorted(points.items())
    return baseline_style(against) | {
        "x": [x_of(level) for level, _ in rows],
        "y": [y for _, y in rows],
        "text": [f"{level} in flight: {number(y)}{unit}" for level, y in rows],
    }


def faint(colour: str, opacity: float) -> str:
    """The `#rrggbb` colour as rgba with this opacity."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def line_at_one(levels: list[int]) -> Figure:
    """The line at 1.0: neither gain nor loss."""
    low, high = level_range(levels)
    return {
        "type": "line",
        "x0": low,
        "x1": high,
        "y0": 1,
        "y1": 1,
        "line": {"color": BASELINE_COLOUR, "width": 1.5, "dash": "dash"},
    }


def turn_shapes(one: Series, low: float, centre: float, high: float) -> list[Figure]:
    """The break-even's interval as a shaded column over the whole height, and a line at its centre."""
    column = {"type": "rect", "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
    return [
        column | {"x0": x_of(low), "x1": x_of(high), "fillcolor": faint(one.colour, 0.14), "line": {"width": 0}},
        column
        | {
            "type": "line",
            "x0": x_of(centre),
            "x1": x_of(centre),
            "line": {"color": one.colour, "width": 1.2, "dash": "dot"},
        },
    ]


def note(x: float, words: str, side: str, row: int) -> Figure:
    """A label at the foot of the chart, left or right of x: under a falling curve the left foot is empty."""
    return {
        "x": x,
        "xref": "x",
        "y": 0.02 + 0.14 * row,
        "yref": "paper",
        "yanchor": "bottom",
        "xanchor": "right" if side == "left" else "left",
        "xshift": -4 if side == "left" else 4,
        "align": side,
        "showarrow": False,
        "text": words,
        "font": {"size": 12},
    }


def level_range(levels: list[int]) -> tuple[float, float]:
    """The x axis' ends for these levels, with a margin."""
    return x_of(min(levels)) - 0.25, x_of(max(levels)) + 0.25


def layout_of(levels: list[int], y_title: str, y_axis: Figure) -> Figure:
    """A layout with the real levels as ticks; those that would touch their neighbour have no label."""
    ticks: list[int] = []
    for level in levels:
        if not ticks or x_of(level) - x_of(ticks[-1]) >= MIN_TICK_GAP:
            ticks.append(level)
    return {
        "xaxis": {
            "title": {"text": "requests in flight"},
            "tickmode": "array",
            "tickvals": [x_of(t) for t in ticks],
            "ticktext": [str(t) for t in ticks],
            "range": list(level_range(levels)),
        },
        "yaxis": {"title": {"text": y_title}, **y_axis},
        "hovermode": "x unified",
        "margin": {"l": 58, "r": 14, "t": 14, "b": 46},
        "legend": {
            "orientation": "h",
            "traceorder": "normal",  # grouped traces would take a row each
            "x": 0,
            "yref": "container",
            "y": 0,
            "yanchor": "bottom",
        },
        "showlegend": True,
    }
