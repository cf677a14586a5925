"""The chart "Where it pays": speed-ups, where they turn, and where a recommended schedule changes its K."""

import math
from collections.abc import Iterable, Sequence

from loadgen.analysis.model import Crossing, LevelFinding, ScheduleEdges
from loadgen.analysis.pairs import Pairing
from loadgen.report.chart import Chart
from loadgen.report.traces import (
    TEXT_TONE,
    Figure,
    Series,
    band,
    faint,
    label,
    layout_of,
    level_range,
    line_at_one,
    lines,
    note,
    turn_shapes,
    void,
    x_of,
)
from loadgen.report.words import crossing_words, finite, fixed, ratio_with_interval, value_of

FEW = 2
"""Up to so many profiles have shaded columns and single pairs; columns of more would cover each other."""
STRIP = 0.035
"""Height of one profile's row in the strip below the curves, as a share of the chart."""


def speedup(
    series: list[Series], levels: list[int], pairings: Sequence[Pairing], edges: ScheduleEdges | None = None
) -> Chart:
    """Speed-up over concurrency with bands and the line at 1.0; break-even intervals as columns for few profiles, as
    bars in a strip of their own for many; a schedule's edges as upright lines.
    """
    few = len(series) <= FEW
    data: list[Figure] = []
    shapes: list[Figure] = [line_at_one(levels)]
    notes: list[Figure] = []
    for one in series:
        data += [band(one, lambda r: r.speedup), lines(one, lambda r: value_of(r.speedup), _hover)]
        data.append(void(one, lambda r: value_of(r.speedup)))
        if few:
            data += [_pairs(one, pairing) for pairing in pairings if pairing.profile == one.profile.profile]
            columns, words = _turns(one, len(notes))
            shapes += columns
            notes += words
        else:
            data[-3]["fillcolor"] = faint(one.colour, 0.07)
    layout = layout_of(levels, "speed-up", {"ticksuffix": "×", "rangemode": "normal"})
    if not few:
        bars = [bar for row, one in enumerate(series) for bar in _bars(one, row, len(series))]
        data += bars
        if bars:
            _make_room(layout, len(series))
    if edges is not None:
        lines_at, words = _edges(edges, sum(level_range(levels)) / 2)
        shapes += lines_at
        notes += words
    layout |= {"shapes": shapes, "annotations": notes}
    figure = {"data": [trace for trace in data if trace["x"]], "layout": layout}
    return Chart("speedup", "Where it pays", _shows(few=few, edges=edges), figure, wide=True)


def _shows(*, few: bool, edges: ScheduleEdges | None) -> str:
    shows = "Output tokens per second, profile over baseline, with its 95 % interval. Above 1.0 speculation pays; "
    if few:
        shows += "dots are single pairs (voided ones too), the shaded column is the interval of the break-even, "
    else:
        shows += "the bars below the curves are the intervals of the break-evens, with a mark where each one turns; "
    shows += "a cross is a level that carries no verdict."
    if edges is not None and edges.places:
        shows += " Upright lines: where the recommended schedule changes its K; vLLM counts requests per engine step."
    return shows


def _crossings(one: Series) -> Iterable[tuple[Crossing, float, float, float]]:
    """(crossing, low, centre, high) by output tokens/s, where all are finite."""
    found = one.profile.break_even.get("output_tokens_per_s")
    for crossing in found.crossings if found else ():
        low, centre, high = (finite(v) for v in (crossing.ci95[0], crossing.concurrency, crossing.ci95[1]))
        if low is not None and centre is not None and high is not None:
            yield crossing, low, centre, high


def _words(one: Series, crossing: Crossing) -> str:
    return crossing_words(crossing, indicative=one.profile.break_even["output_tokens_per_s"].indicative)


def _turns(one: Series, row: int) -> tuple[list[Figure], list[Figure]]:
    """(shaded columns, notes) for the crossings; the notes start at `row` from below."""
    shapes: list[Figure] = []
    notes: list[Figure] = []
    for crossing, low, centre, high in _crossings(one):
        shapes += turn_shapes(one, low, centre, high)
        side, edge = ("left", low) if crossing.direction == "down" else ("right", high)
        notes.append(note(x_of(edge), f"{one.name} turns at<br>{_words(one, crossing)}", side, row + len(notes)))
    return shapes, notes


def _bars(one: Series, row: int, rows: int) -> list[Figure]:
    """One bar per crossing in the strip's row of this profile."""
    height = rows - row
    return [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": f"{one.name} turns",
            "x": [x_of(low), x_of(centre), x_of(high)],
            "y": [height] * 3,
            "yaxis": "y2",
            "line": {"color": one.colour, "width": 5},
            "marker": one.marker | {"size": [0, 11, 0], "opacity": 1},
            "text": [f"{one.name} turns at {_words(one, crossing)}"] * 3,
            "hovertemplate": "%{text}<extra></extra>",
            "showlegend": False,
            "legendgroup": one.name,
        }
        for crossing, low, centre, high in _crossings(one)
    ]


def _make_room(layout: Figure, rows: int) -> None:
    """A second y axis below the first one, a row per profile."""
    top = STRIP * rows
    layout["yaxis"]["domain"] = [top + 0.03, 1]
    layout["yaxis2"] = {
        "domain": [0, top],
        "range": [0.4, rows + 0.6],
        "anchor": "x",
        "showticklabels": False,
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "title": {"text": "turns", "font": {"size": 13}},
    }
    layout["xaxis"]["anchor"] = "y2"


def _edges(edges: ScheduleEdges, middle: float) -> tuple[list[Figure], list[Figure]]:
    """(upright lines, their labels at the top, on the side towards the middle); each line lies between the last load
    of one K and the first of the next.
    """
    shapes: list[Figure] = []
    notes: list[Figure] = []
    for row, (batch, in_flight) in enumerate(edges.places):
        x = x_of(in_flight + 0.5)
        shapes.append(
            {
                "type": "line",
                "xref": "x",
                "yref": "paper",
                "x0": x,
                "x1": x,
                "y0": 0,
                "y1": 1,
                "line": {"color": TEXT_TONE, "width": 2, "dash": "longdash"},
            }
        )
        words = f"{label(edges.profile)}: K changes above<br>{batch} per step ({in_flight} in flight)"
        side = "left" if x > middle else "right"
        notes.append(note(x, words, side, 0) | {"y": 0.98 - 0.14 * row, "yanchor": "top"})
    return shapes, notes


def _pairs(one: Series, pairing: Pairing) -> Figure:
    """The single pairs of the valid levels as small dots: how far the repeats lie apart."""
    valid = {level.concurrency for level in one.profile.levels if level.valid}
    rows = [
        (pair.key, pair.profile.output_tokens_per_s / pair.baseline.output_tokens_per_s)
        for pair in pairing.pairs
        if pair.key.level in valid and pair.baseline.output_tokens_per_s > 0
    ]
    rows = [(key, ratio) for key, ratio in rows if math.isfinite(ratio)]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{one.name}: pairs",
        "x": [x_of(key.level) for key, _ in rows],
        "y": [ratio for _, ratio in rows],
        "marker": {"color": one.colour, "size": 6, "opacity": 0.5},
        "hoverinfo": "skip",
        "showlegend": False,
        "legendgroup": one.name,
    }


def _hover(level: LevelFinding) -> str:
    """Ratio, interval, n and the batch that the server really ran."""
    batch = f", batch {fixed(level.batch, 1)}" if finite(level.batch) is not None else ""
    return f"{ratio_with_interval(level.speedup)}, n = {level.n}{batch}"
