"""The speed-up chart as a small SVG: for Markdown, and for a page without JavaScript."""

import math
from collections.abc import Iterable, Iterator
from html import escape

from loadgen.analysis.model import ConditionFinding, LevelFinding, ScheduleEdges
from loadgen.report.speedup_chart import FEW
from loadgen.report.traces import BASELINE_COLOUR, TEXT_TONE, Series, x_of
from loadgen.report.words import clean, condition_words, finite, value_of

WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 16, 82
# Stroke patterns in pixels, in the order of traces.DASHES.
STROKES = ("", "8 5", "2 4", "8 4 2 4", "14 6", "14 4 2 4")
BAR = 8
"""Pixels per row of the strip below the curves."""
TEXT, GRID = "#1b1f24", "#dfe3e8"


class Frame:
    """Maps levels and ratios to pixels."""

    def __init__(self, levels: Iterable[int], ratios: Iterable[float], strip: int = 0) -> None:
        """`strip` pixels stay free below the curves."""
        self.foot = HEIGHT - BOTTOM - strip
        self.levels = sorted(levels)
        self.x_low, self.x_high = x_of(self.levels[0]) - 0.2, x_of(self.levels[-1]) + 0.2
        ends = [1.0, *ratios]
        self.step = tick_step(max(ends) - min(ends))
        self.y_low = max(0.0, math.floor(min(ends) / self.step - 0.1) * self.step)
        self.y_high = math.ceil(max(ends) / self.step + 0.1) * self.step

    def x(self, level: float) -> float:
        """Pixels from the left; levels beyond the frame stay at its edge."""
        share = (x_of(level) - self.x_low) / (self.x_high - self.x_low)
        return round(LEFT + min(1.0, max(0.0, share)) * (WIDTH - LEFT - RIGHT), 1)

    def y(self, ratio: float) -> float:
        """Pixels from the top."""
        share = (ratio - self.y_low) / (self.y_high - self.y_low)
        return round(self.foot - share * (self.foot - TOP), 1)

    def ticks(self) -> list[float]:
        """The y axis' ticks."""
        count = round((self.y_high - self.y_low) / self.step)
        return [self.y_low + i * self.step for i in range(count + 1)]


def tick_step(span: float) -> float:
    """1, 2 or 5 times a power of ten, so that about five steps cover the span."""
    rough = max(span, 0.05) / 5
    power: float = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))


def speedup_svg(condition: ConditionFinding, edges: ScheduleEdges | None = None) -> str | None:
    """The chart as SVG text; None if no valid level has a speed-up. `edges`: the recommended schedule's."""
    series = [Series(profile, i) for i, profile in enumerate(condition.profiles)]
    rows = [r for one in series for r in _valid(one)]
    if not rows:
        return None
    ends = [end for r in rows if r.speedup for end in (*(r.speedup.ci95 or ()), r.speedup.value)]
    many = len(series) > FEW
    levels = {r.concurrency for r in rows}
    frame = Frame(levels, (e for e in ends if math.isfinite(e)), BAR * len(series) + BAR if many else 0)
    title = escape(f"Speed-up over requests in flight: {condition_words(condition.condition)}")
    look = f'font-family="system-ui, sans-serif" font-size="13" fill="{TEXT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" {look}>',
        f"<title>{title}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        *(_bars(series, frame) if many else _turns(series, frame)),
        *_axes(frame),
        *_edges(edges, frame),
    ]
    for one in series:
        parts += _line(one, frame)
    return "\n".join([*parts, *_legend(series), "</svg>"]) + "\n"


def _valid(one: Series) -> list[LevelFinding]:
    """The levels that carry a verdict and a speed-up."""
    return [r for r in one.profile.levels if r.valid and value_of(r.speedup) is not None]


def _axes(frame: Frame) -> Iterator[str]:
    """Grid, ticks, titles and the line at 1.0."""
    for tick in frame.ticks():
        y = frame.y(tick)
        yield f'<path d="M{LEFT} {y}H{WIDTH - RIGHT}" stroke="{GRID}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{tick:.2f}×</text>'
    last = -math.inf
    for level in frame.levels:
        x = frame.x(level)
        if x - last >= 30:
            yield f'<text x="{x}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{level}</text>'
            last = x
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield f'<text x="{middle}" y="{HEIGHT - BOTTOM + 40}" text-anchor="middle">requests in flight</text>'
    yield f'<path d="M{LEFT} {frame.y(1)}H{WIDTH - RIGHT}" stroke="{BASELINE_COLOUR}" stroke-dasharray="6 4"/>'


def _turns(series: list[Series], frame: Frame) -> Iterator[str]:
    """The break-even intervals as shaded columns."""
    for one in series:
        found = one.profile.break_even.get("output_tokens_per_s")
        for crossing in found.crossings if found else ():
            low, high = (finite(v) for v in crossing.ci95)
            if low is not None and high is not None:
                x, end = frame.x(low), frame.x(high)
                size = f'width="{max(1.0, round(end - x, 1))}" height="{HEIGHT - TOP - BOTTOM}"'
                yield f'<rect x="{x}" y="{TOP}" {size} fill="{one.colour}" fill-opacity="0.13"/>'


def _bars(series: list[Series], frame: Frame) -> Iterator[str]:
    """The break-even intervals of many profiles, a row each below the curves: columns would cover each other."""
    for row, one in enumerate(series, 1):
        found = one.profile.break_even.get("output_tokens_per_s")
        for crossing in found.crossings if found else ():
            low, high = (finite(v) for v in crossing.ci95)
            if low is not None and high is not None:
                x, end = frame.x(low), frame.x(high)
                y = frame.foot + BAR * row
                yield f'<path d="M{x} {y}H{max(end, x + 2)}" stroke="{one.colour}" stroke-width="{BAR - 3}"/>'


def _edges(edges: ScheduleEdges | None, frame: Frame) -> Iterator[str]:
    """The schedule's edges as upright lines with the requests per step at their head."""
    for row, (batch, in_flight) in enumerate(edges.places if edges else ()):
        x, y = frame.x(in_flight + 0.5), TOP + 14 + 18 * row
        side = "end" if x > (LEFT + WIDTH - RIGHT) / 2 else "start"
        words = f"K changes above {batch} per step ({in_flight} in flight)"
        yield f'<path d="M{x} {TOP}V{HEIGHT - BOTTOM}" stroke="{TEXT_TONE}" stroke-width="2" stroke-dasharray="10 5"/>'
        yield f'<text x="{x - 6 if side == "end" else x + 6}" y="{y}" text-anchor="{side}">{words}</text>'


def _line(one: Series, frame: Frame) -> Iterator[str]:
    """The band, the line and the points of one profile."""
    rows = _valid(one)
    bounds = [(r.concurrency, *r.speedup.ci95) for r in rows if r.speedup and r.speedup.ci95]
    bounds = [row for row in bounds if all(map(math.isfinite, row))]
    if len(bounds) > 1:
        upper = [f"{frame.x(level)},{frame.y(high)}" for level, _, high in bounds]
        lower = [f"{frame.x(level)},{frame.y(low)}" for level, low, _ in reversed(bounds)]
        yield f'<polygon points="{" ".join(upper + lower)}" fill="{one.colour}" fill-opacity="0.18"/>'
    points = [(frame.x(r.concurrency), frame.y(r.speedup.value)) for r in rows if r.speedup]
    if len(points) > 1:
        path = " ".join(f"{x},{y}" for x, y in points)
        yield f'<polyline points="{path}" fill="none" {_stroke(one)}/>'
    for x, y in points:
        yield f'<circle cx="{x}" cy="{y}" r="4" fill="{one.colour}"/>'


def _legend(series: list[Series]) -> Iterator[str]:
    """The profiles' names in a row at the foot, cut where they are too long."""
    wide = (WIDTH - LEFT - RIGHT) / max(len(series), 1)
    for i, one in enumerate(series):
        x, y = round(LEFT + i * wide, 1), HEIGHT - 14
        name = clean(one.profile.profile)
        fits = max(4, int((wide - 38) / 7.2))
        shown = name if len(name) <= fits else f"{name[: fits - 1]}…"
        yield f'<path d="M{x} {y - 4}h26" {_stroke(one)}/>'
        yield f'<text x="{x + 32}" y="{y}">{escape(shown)}</text>'


def _stroke(one: Series) -> str:
    """Colour and pattern of a profile's line."""
    dash = STROKES[one.index % len(STROKES)]
    pattern = f' stroke-dasharray="{dash}"' if dash else ""
    return f'stroke="{one.colour}" stroke-width="2.2"{pattern}'
