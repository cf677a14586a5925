"""The plan's charts: each objective over the load with its limit, and goodput."""

from collections.abc import Callable, Sequence

from loadgen.analysis.capacity_model import LevelVerdict, Offer, Plan, Slo
from loadgen.analysis.model import ProfileFinding
from loadgen.report.chart import Chart
from loadgen.report.plan_rows import finding_words
from loadgen.report.traces import BASELINE_COLOUR, Figure, Series, layout_of, trace_of, x_of
from loadgen.report.words import finite, number, percent


def plan_charts(plan: Plan, offers: Sequence[Offer]) -> list[Chart]:
    """The charts of one condition."""
    made = [_objective(offers, slo) for slo in plan.slos]
    made.append(
        _chart(
            offers,
            "goodput",
            "Goodput",
            "requests/s within all limits",
            "Requests per second that keep every limit at once: where it falls, more load serves fewer users well.",
            lambda level: finite(level.goodput_per_s),
            lambda level: (
                f"{number(level.goodput_per_s)} of {number(level.requests_per_s)} requests/s "
                f"({percent(level.good_share)})"
            ),
        )
    )
    return [chart for chart in made if any(trace["x"] for trace in chart.figure["data"])]


def _objective(offers: Sequence[Offer], slo: Slo) -> Chart:
    def found(level: LevelVerdict) -> float | None:
        return next((finite(1000 * f.estimate.value) for f in level.findings if f.slo == slo), None)

    def words(level: LevelVerdict) -> str:
        return next((finding_words(f) for f in level.findings if f.slo == slo), "")

    name = slo.name.replace("_", " ").upper().replace("P9", "p9").replace("P5", "p5")
    chart = _chart(
        offers,
        slo.name.replace(".", "-"),
        f"{name} against its limit",
        f"{name}, ms",
        "The measured quantile at each level with its 95 % order-statistic interval; the dashed line is the limit.",
        found,
        words,
    )
    for trace, offer in zip(chart.figure["data"], offers, strict=True):
        trace["error_y"] = _bars(offer, slo, trace["y"])
    limit = 1000 * slo.limit_s
    line = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": limit, "y1": limit}
    chart.figure["layout"]["shapes"] = [line | {"line": {"color": BASELINE_COLOUR, "width": 1.5, "dash": "dash"}}]
    return chart


def _bars(offer: Offer, slo: Slo, values: Sequence[float]) -> Figure:
    """Error bars; a side without a bound gets none."""
    estimates = [f.estimate for level in offer.levels for f in level.findings if f.slo == slo]
    estimates = [e for e in estimates if finite(e.value) is not None]
    pairs = list(zip(estimates, values, strict=True))
    up = [max(0.0, 1000 * high - y) if (high := finite(e.high)) is not None else 0.0 for e, y in pairs]
    down = [max(0.0, y - 1000 * low) if (low := finite(e.low)) is not None else 0.0 for e, y in pairs]
    return {"type": "data", "symmetric": False, "array": up, "arrayminus": down, "thickness": 1.2, "width": 4}


def _chart(
    offers: Sequence[Offer],
    key: str,
    title: str,
    y_title: str,
    shows: str,
    of: Callable[[LevelVerdict], float | None],
    words: Callable[[LevelVerdict], str],
) -> Chart:
    levels = sorted({level.level for offer in offers for level in offer.levels})
    data: list[Figure] = []
    for index, offer in enumerate(offers):
        rows = [(level, value) for level in offer.levels if (value := of(level)) is not None]
        trace = trace_of(Series(ProfileFinding(offer.setting, "", (), {}), index))
        trace["x"] = [x_of(level.level) for level, _ in rows]
        trace["y"] = [round(value, 6) for _, value in rows]
        trace["text"] = [f"{level.level} in flight: {words(level)}" for level, _ in rows]
        data.append(trace)
    layout = layout_of(levels or [1], y_title, {"rangemode": "tozero"})
    return Chart(key, title, shows, {"data": data, "layout": layout})
