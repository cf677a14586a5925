"""The charts of one condition, as Plotly figures in plain dicts: nothing here needs Plotly's Python package."""

import math
from collections.abc import Iterable, Sequence

from loadgen.analysis.model import ConditionFinding, LevelFinding, ScheduleEdges
from loadgen.analysis.pairs import pair_cells
from loadgen.report.chart import Chart
from loadgen.report.detail import Detail
from loadgen.report.latency import spread, tail
from loadgen.report.parts import parts
from loadgen.report.speedup_chart import speedup
from loadgen.report.traces import (
    BASELINE_COLOUR,
    Figure,
    Series,
    baseline,
    baseline_style,
    error_bars,
    layout_of,
    lines,
    trace_of,
)
from loadgen.report.words import (
    finite,
    fixed,
    milliseconds,
    percent,
    plus_minus,
    ratio_of,
    value_of,
)
from loadgen.store.model import CellResult

NO_DETAIL = Detail()


def charts(
    condition: ConditionFinding,
    against: str,
    cells: Sequence[CellResult] = (),
    detail: Detail = NO_DETAIL,
    edges: ScheduleEdges | None = None,
) -> list[Chart]:
    """The charts of one condition, in reading order; charts without a single point are left out. `edges`: those of
    the recommended schedule, if it is one of this condition.
    """
    series = [Series(profile, i) for i, profile in enumerate(condition.profiles)]
    levels = sorted({level.concurrency for profile in condition.profiles for level in profile.levels})
    if not levels:
        return []
    where = condition.condition
    made = [
        speedup(series, levels, pair_cells((c for c in cells if c.key.condition == where), against), edges),
        _throughput(series, levels, against),
        _why(series, levels) if len(series) <= 2 else _why_many(series),
        # One chart a profile would bury the others; the sentences stand below each table.
        *(map(parts, series) if len(series) <= 2 else ()),
        _acceptance(series, levels),
        _positions(series),
        _latency(series, levels, against, "tpot"),
        _latency(series, levels, against, "ttft"),
        tail(series, cells, where, against, "tpot"),
        tail(series, cells, where, against, "ttft"),
        spread(series, detail.latencies, where, against, "tpot"),
        spread(series, detail.latencies, where, against, "ttft"),
        _pareto(series, against),
    ]
    return [chart for chart in made if chart and any(trace["x"] for trace in chart.figure["data"])]


def _throughput(series: list[Series], levels: list[int], against: str) -> Chart:
    """Output tokens per second of the baseline and of each profile."""
    data = [baseline(series, lambda r: value_of(r.baseline_tokens_per_s), against, " tokens/s")]
    for one in series:
        trace = lines(one, lambda r: value_of(r.tokens_per_s), _throughput_hover)
        trace["error_y"] = error_bars(one, lambda r: r.tokens_per_s)
        data.append(trace)
    layout = layout_of(levels, "output tokens/s", {"rangemode": "tozero"})
    shows = "Output tokens per second of the whole server; bars are 95 % intervals where n allows one."
    return Chart("throughput", "Throughput", shows, {"data": data, "layout": layout})


def _why(series: list[Series], levels: list[int]) -> Chart:
    """Tokens per step against the step-time ratio: where they cross, speculation turns."""
    data: list[Figure] = []
    for one in series:
        gain = lines(one, lambda r: finite(r.tokens_per_step), lambda r: f"{fixed(r.tokens_per_step, 2)} tokens/step")
        cost = lines(
            one, lambda r: finite(r.step_time_ratio), lambda r: f"step takes {ratio_of(r.step_time_ratio)} as long"
        )
        gain["name"], cost["name"] = f"{one.name}: tokens per step", f"{one.name}: step time"
        cost["line"] = one.line | {"dash": "dot", "width": 1.6}
        cost["marker"] = one.marker | {"symbol": f"{one.marker['symbol']}-open"}
        data += [gain, cost]
    layout = layout_of(levels, "per engine step", {"rangemode": "tozero"})
    shows = (
        "Gain against cost: tokens per step (solid) and how much longer a step takes than the baseline's (dotted). "
        "Speculation pays while the gain stands above the cost."
    )
    return Chart("why", "Why it turns", shows, {"data": data, "layout": layout})


def _why_many(series: list[Series]) -> Chart:
    """The same for many profiles: cost across, gain up, and the diagonal where both are equal."""
    data: list[Figure] = []
    for one in series:
        rows = [r for r in one.profile.levels if r.valid and finite(r.step_time_ratio) and finite(r.tokens_per_step)]
        trace = trace_of(one)
        trace["x"] = [r.step_time_ratio for r in rows]
        trace["y"] = [r.tokens_per_step for r in rows]
        trace["text"] = [
            f"{r.concurrency} in flight: {fixed(r.tokens_per_step, 2)} tokens/step, "
            f"step takes {ratio_of(r.step_time_ratio)} as long"
            for r in rows
        ]
        data.append(trace)
    ends = [value for trace in data for value in (*trace["x"], *trace["y"])]
    layout = layout_of([1], "gain: tokens per step", {})
    layout["xaxis"] = {"title": {"text": "cost: step time, profile / baseline"}}
    layout["hovermode"] = "closest"
    if ends:
        low, high = min(ends), max(ends)
        diagonal = {"type": "line", "x0": low, "y0": low, "x1": high, "y1": high}
        layout["shapes"] = [diagonal | {"line": {"color": BASELINE_COLOUR, "width": 1.5, "dash": "dash"}}]
    shows = (
        "Gain against cost, a point a level: above the dashed diagonal a step yields more tokens than it costs time, "
        "so speculation pays; growing load moves a profile to the right."
    )
    return Chart("why", "Why it turns", shows, {"data": data, "layout": layout})


def _acceptance(series: list[Series], levels: list[int]) -> Chart:
    """Acceptance rate over concurrency."""
    data = [lines(one, lambda r: finite(r.acceptance_rate), _acceptance_hover) for one in series]
    layout = layout_of(levels, "acceptance rate", {"tickformat": ".0%", "range": [0, 1.02]})
    shows = "Share of drafted tokens that the target model accepted; the load should hardly move it."
    return Chart("acceptance", "Acceptance", shows, {"data": data, "layout": layout})


def _positions(series: list[Series]) -> Chart:
    """Acceptance by draft position, pooled over the valid levels by their drafts."""
    data: list[Figure] = []
    longest = 1
    for one in series:
        shares = pooled_positions(one.profile.levels)
        longest = max(longest, len(shares))
        trace = trace_of(one)
        trace["x"] = list(range(1, len(shares) + 1))
        trace["y"] = shares
        trace["text"] = [f"position {i}: {percent(share, 1)}" for i, share in enumerate(shares, 1)]
        data.append(trace)
    layout = layout_of([1], "accepted", {"tickformat": ".0%", "range": [0, 1.02]})
    layout["xaxis"] = {"title": {"text": "position in the draft"}, "dtick": 1, "range": [0.7, longest + 0.3]}
    shows = (
        "Share of drafts whose token at this position was accepted: late positions that hardly pass are wasted work."
    )
    return Chart("positions", "Acceptance by position", shows, {"data": data, "layout": layout})


def _latency(series: list[Series], levels: list[int], against: str, what: str) -> Chart:
    """Median TPOT or TTFT in milliseconds."""

    def of(level: LevelFinding, field: str) -> float | None:
        value = finite(getattr(level, field))
        return None if value is None else 1000 * value

    data = [baseline(series, lambda r: of(r, f"baseline_{what}_p50_s"), against, " ms")]
    data += [
        lines(one, lambda r: of(r, f"{what}_p50_s"), lambda r: f"{milliseconds(getattr(r, f'{what}_p50_s'))} ms")
        for one in series
    ]
    title = "Time per output token" if what == "tpot" else "Time to first token"
    tells = "what one user feels while text streams" if what == "tpot" else "how long a user waits for the first word"
    layout = layout_of(levels, f"{what.upper()} p50, ms", {"rangemode": "tozero"})
    return Chart(what, title, f"Median over requests: {tells}. Lower is better.", {"data": data, "layout": layout})


def _pareto(series: list[Series], against: str) -> Chart:
    """Throughput of the server against the speed of one user, a point a level."""
    data: list[Figure] = []
    if series:
        rows = [r for r in series[0].profile.levels if r.baseline_tpot_p50_s and value_of(r.baseline_tokens_per_s)]
        data.append(
            baseline_style(against)
            | {
                "x": [1 / r.baseline_tpot_p50_s for r in rows if r.baseline_tpot_p50_s],
                "y": [value_of(r.baseline_tokens_per_s) for r in rows],
                "text": [f"{r.concurrency} in flight" for r in rows],
            }
        )
    for one in series:
        rows = [r for r in one.profile.levels if r.valid and finite(r.tpot_p50_s) and value_of(r.tokens_per_s)]
        trace = trace_of(one)
        trace["x"] = [1 / r.tpot_p50_s for r in rows if r.tpot_p50_s]
        trace["y"] = [value_of(r.tokens_per_s) for r in rows]
        trace["text"] = [f"{r.concurrency} in flight" for r in rows]
        data.append(trace)
    for trace in data:
        trace["hovertemplate"] = "%{text}: %{y:,.0f} tokens/s in all, %{x:.1f} per user"
    layout = layout_of([1], "server, tokens/s", {"rangemode": "tozero"})
    layout["xaxis"] = {"title": {"text": "one user, tokens/s (1 / TPOT)"}, "rangemode": "tozero"}
    layout["hovermode"] = "closest"
    shows = (
        "The trade between all users and one: up is more throughput, right is a faster stream; each point is a level."
    )
    return Chart("pareto", "Throughput against user speed", shows, {"data": data, "layout": layout}, wide=True)


def pooled_positions(levels: Iterable[LevelFinding]) -> list[float]:
    """Acceptance per position over the valid levels, weighted by their drafts (equally where drafts are unknown)."""
    sums: list[float] = []
    weights: list[float] = []
    for level in levels:
        if not level.valid:
            continue
        weight = level.drafts if level.drafts and math.isfinite(level.drafts) else 1.0
        for i, share in enumerate(level.acceptance_per_position):
            if i == len(sums):
                sums.append(0.0)
                weights.append(0.0)
            if math.isfinite(share):
                sums[i] += weight * share
                weights[i] += weight
    return [total / weight for total, weight in zip(sums, weights, strict=True) if weight > 0]


def _throughput_hover(level: LevelFinding) -> str:
    """Rate with its interval and n."""
    return f"{plus_minus(level.tokens_per_s)} tokens/s, n = {level.n}"


def _acceptance_hover(level: LevelFinding) -> str:
    """Rate and length, and how many drafts stand behind them."""
    drafts = f", {level.drafts:,.0f} drafts" if finite(level.drafts) is not None else ""
    return f"{percent(level.acceptance_rate, 1)}, mean length {fixed(level.mean_acceptance_length, 2)}{drafts}"
