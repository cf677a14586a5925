"""The pictures of a same-quality test: gaps where greedy answers part, distances of sampled tokens."""

from collections.abc import Sequence

from loadgen.analysis.lossless_model import Arm, Divergence, LosslessFinding, PlaceFinding, SamplingFinding
from loadgen.report.chart import Chart
from loadgen.report.lossless_text import short_name
from loadgen.report.traces import BASELINE_COLOUR, COLOURS, SYMBOLS, Figure, label
from loadgen.report.words import fixed

OUTSIDE = 1.15
"""Where a token outside the 20 likeliest is drawn: that much above everything that has a number."""


def gap_chart(finding: LosslessFinding) -> Chart | None:
    """Every divergence by its place in the answer and its gap, with the tolerance; None if no answers part."""
    greedy = finding.greedy
    if greedy is None or not any(arm.divergences for arm in (*greedy.arms, *greedy.control)):
        return None
    known = [d.gap for arm in (*greedy.arms, *greedy.control) for d in arm.divergences if d.gap is not None]
    top = OUTSIDE * max([*known, greedy.tolerance.nat])
    data = [
        _dots(
            f"{finding.profile}, {arm.concurrency} in flight",
            arm,
            top,
            COLOURS[i],
            f"{SYMBOLS[i]}-open" if i else SYMBOLS[i],
        )
        for i, arm in enumerate(greedy.arms)
    ]
    data += [
        _dots(f"control, {arm.concurrency} in flight", arm, top, BASELINE_COLOUR, f"{SYMBOLS[i]}-open")
        for i, arm in enumerate(greedy.control)
    ]
    layout = _layout(
        "output tokens before", "gap, nat", _limit(greedy.tolerance.nat, f"tolerance {greedy.tolerance.nat:.2g}")
    )
    shows = (
        "Where an answer leaves the baseline's: how much likelier the baseline finds its own token than the one that "
        "was said. Below the dashed line which of both comes is a matter of rounding."
    )
    if any(d.gap is None for arm in (*greedy.arms, *greedy.control) for d in arm.divergences):
        shows += " Crosses at the top: not even among the baseline's 20 likeliest tokens."
    return Chart("gaps", "Each parting", shows, {"data": data, "layout": layout}, wide=True)


def _dots(name: str, arm: Arm, top: float, colour: str, symbol: str) -> Figure:
    symbols = ["x-thin" if d.gap is None else symbol for d in arm.divergences]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": label(f"{name} ({len(arm.divergences)})"),
        "x": [d.position for d in arm.divergences],
        "y": [top if d.gap is None else d.gap for d in arm.divergences],
        "text": [label(_dot_words(d)) for d in arm.divergences],
        "marker": {
            "color": colour,
            "symbol": symbols,
            "size": 9 if "open" in symbol else 6,
            "line": {"color": colour, "width": 1.5},
        },
        "cliponaxis": False,
        "hovertemplate": "%{text}",
    }


def _dot_words(d: Divergence) -> str:
    gap = "not among the 20 likeliest" if d.gap is None else f"{fixed(d.gap, 3)} nat"
    return f"{short_name(d.prompt)}, after {d.position} tokens: {gap}"


def distance_chart(sampling: SamplingFinding, profile: str) -> Chart | None:
    """Each place's distance with its bound, against the margin and the control; None without samples."""
    if not sampling.places:
        return None
    data = [
        _points(profile, sampling.places, COLOURS[0], SYMBOLS[0], -0.12),
        _points("control", sampling.control, BASELINE_COLOUR, f"{SYMBOLS[0]}-open", 0.12),
    ]
    layout = _layout(
        "position in the sampled answer", "distance", _limit(sampling.margin, f"margin {sampling.margin:g}")
    )
    layout["xaxis"] |= {"dtick": 1, "range": [0.5, max(place.position for place in sampling.places) + 0.5]}
    shows = (
        "The share of tokens that would have to change for both servers to say the same; the bar ends at the 95 % "
        "bound, which must stay below the dashed margin. A point per prefix. Position 1 never comes from a draft."
    )
    key = f"tv-{sampling.temperature:g}".replace(".", "-")
    return Chart(key, "Distance at each position", shows, {"data": data, "layout": layout}, wide=True)


def _points(name: str, places: Sequence[PlaceFinding], colour: str, symbol: str, shift: float) -> Figure:
    names = sorted({place.prefix for place in places})
    apart = {
        prefix: shift + 0.05 * (i - (len(names) - 1) / 2) / max(1, len(names) - 1) for i, prefix in enumerate(names)
    }
    return {
        "type": "scatter",
        "mode": "markers",
        "name": label(name),
        "x": [place.position + apart[place.prefix] for place in places],
        "y": [place.tv for place in places],
        "text": [label(_place_words(place)) for place in places],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [max(0.0, place.tv_upper95 - place.tv) for place in places],
            "arrayminus": [0.0] * len(places),
            "color": colour,
            "thickness": 1.2,
            "width": 2,
        },
        "marker": {"color": colour, "symbol": symbol, "size": 6},
        "cliponaxis": False,
        "hovertemplate": "%{text}",
    }


def _place_words(place: PlaceFinding) -> str:
    where = f"{short_name(place.prefix)}, position {place.position}"
    return f"{where}: {fixed(place.tv, 3)}, p after Holm {place.p_holm:.2g}"


def _limit(value: float, words: str) -> Figure:
    line = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": value, "y1": value}
    note = {"xref": "paper", "x": 1, "xanchor": "right", "y": value, "yanchor": "bottom", "showarrow": False}
    return {
        "shapes": [line | {"line": {"color": BASELINE_COLOUR, "width": 1.5, "dash": "dash"}}],
        "annotations": [note | {"text": words, "font": {"size": 12}}],
    }


def _layout(x_title: str, y_title: str, limit: Figure) -> Figure:
    return {
        "xaxis": {"title": {"text": x_title}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": y_title}, "rangemode": "tozero"},
        "hovermode": "closest",
        "margin": {"l": 58, "r": 14, "t": 14, "b": 46},
        "legend": {"orientation": "h", "x": 0, "yref": "container", "y": 0, "yanchor": "bottom"},
        "showlegend": True,
        **limit,
    }


def charts(finding: LosslessFinding) -> dict[str, Chart]:
    """Section → its chart, where there is something to draw: `greedy`, and each temperature as `0.8`."""
    drawn = {f"{s.temperature:g}": distance_chart(s, finding.profile) for s in finding.sampling}
    drawn["greedy"] = gap_chart(finding)
    return {name: chart for name, chart in drawn.items() if chart is not None}
