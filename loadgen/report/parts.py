"""What a speed-up is made of: the explanation's parts as stacked bars."""

import math

from loadgen.analysis.model import LevelFinding
from loadgen.report.chart import Chart
from loadgen.report.traces import COLOURS, TEXT_TONE, Figure, Series, layout_of

# (field, words); the order in which the bars are stacked.
PARTS = (
    ("acceptance", "accepted drafts"),
    ("coverage", "steps without a draft"),
    ("step_rate", "slower steps"),
    ("batch", "batch"),
    ("first_tokens", "first tokens"),
    ("residual", "client against server"),
)
PATTERNS = ("", "/", "x", "-", ".", "+")


def parts(one: Series) -> Chart:
    """The parts of ln speed-up per level, stacked; they add up to the marked sum."""
    rows = [r for r in one.profile.levels if r.valid and r.explanation and math.isfinite(r.explanation.log_speedup)]
    levels = [str(r.concurrency) for r in rows]
    data: list[Figure] = []
    for i, (field, words) in enumerate(PARTS):
        values = [_part(row, field) for row in rows]
        data.append(
            {
                "type": "bar",
                "name": words,
                "x": levels,
                "y": values,
                "marker": {"color": COLOURS[i % len(COLOURS)], "pattern": {"shape": PATTERNS[i], "solidity": 0.25}},
                "text": [f"{words}: × {math.exp(value):.3f}" for value in values],
                "textposition": "none",
                "hovertemplate": "%{text}<extra></extra>",
            }
        )
    sums = [r.explanation.log_speedup for r in rows if r.explanation]
    data.append(
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": "speed-up",
            "x": levels,
            "y": sums,
            "text": [f"speed-up: {math.exp(value):.2f}×" for value in sums],
            "hovertemplate": "%{text}<extra></extra>",
            "line": {"color": TEXT_TONE, "width": 1.5},
            "marker": {
                "color": "#20252c",
                "symbol": "diamond",
                "size": 10,
                "line": {"color": "#ffffff", "width": 1.5},
            },
        }
    )
    layout = layout_of([1], "ln speed-up", {"zeroline": True})
    layout["xaxis"] = {"title": {"text": "requests in flight"}, "type": "category"}
    layout["barmode"] = "relative"
    shows = (
        "The speed-up taken apart, level by level: bars above zero gain, bars below cost, the diamond is their sum "
        "(a logarithm: 0 is no change, 0.1 about 10 %)."
    )
    return Chart(
        f"parts{one.index}", f"What the speed-up of {one.profile.profile} is made of", shows,
        {"data": data, "layout": layout}, wide=True,
    )  # fmt: skip


def _part(row: LevelFinding, field: str) -> float:
    """One part; 0 where it is unknown."""
    value = float(getattr(row.explanation, field))
    return value if math.isfinite(value) else 0.0
