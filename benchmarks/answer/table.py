"""The bench's results as Markdown tables."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.answer.costfit import FitError
from benchmarks.answer.full import FullCheck
from benchmarks.answer.savings import Saving
from benchmarks.answer.score import Score
from benchmarks.answer.verify import VerifyScore

BEGIN, END = "<!-- answer-bench: begin -->", "<!-- answer-bench: end -->"


def coverage(
    scores: Sequence[Score], title: str = "Coverage (nominal 95 %) and false findings (nominal at most 5 %)"
) -> str:
    """One row per world and design."""
    head = (
        "world",
        "design",
        "runs",
        "a crossing found",
        "all statements true",
        "curve holds the exact crossing",
        "as published, whole requests",
        "bracket holds it, where there is no curve",
        "crossing off by, mean",
        "false findings",
        "half-width (median)",
        "measured s",
    )
    rows = [
        (
            one.world,
            one.design,
            f"{one.runs}",
            _percent(one.found),
            _percent(one.covered),
            _percent(one.curve_covered, one.by_curve),
            _percent(one.whole_covered),
            _percent(one.bracket_covered, one.by_bracket),
            _percent(one.bias, signed=True),
            _percent(one.false_found),
            _percent(one.half_width),
            f"{one.seconds:.0f}",
        )
        for one in scores
    ]
    return _table(title, head, rows)


def savings(found: Sequence[Saving]) -> str:
    """Refining against fixed grids."""
    head = ("machine", "design", "half-width (median)", "measured s", "a fixed grid as narrow: s", "share of it")
    rows = []
    for one in found:
        if one.equal_seconds is None:
            finest = one.finest
            grid = f"> {finest.seconds:.0f} ({finest.levels} levels reach {_percent(finest.half_width)})"
            share = f"< {one.seconds / finest.seconds:.0%}"
        else:
            grid, share = f"{one.equal_seconds:.0f}", f"{one.seconds / one.equal_seconds:.0%}"
        rows.append((one.world, one.design, _percent(one.half_width), f"{one.seconds:.0f}", grid, share))
    return _table("Measured seconds at equal half-width (goal: at most a third)", head, rows)


def parts(found: Sequence[Score]) -> str:
    """The same runs, read with less held possible."""
    head = ("world", "the interval with", "curve holds the exact crossing", "its half-width (median)")
    rows = [
        (one.world, one.design, _percent(one.curve_covered, one.by_curve), _percent(one.exact_half_width))
        for one in found
    ]
    return _table("What each allowance costs: the same runs, read without it", head, rows)


def full(found: Sequence[FullCheck]) -> str:
    """Composed runs beside fully simulated ones."""
    head = (
        "runs",
        "n",
        "found",
        "curve holds the exact crossing",
        "as published, whole requests",
        "off by, mean",
        "half-width (median)",
        "measured s",
    )
    rows = [
        (
            f"{one.score.world}, {one.score.design}",
            f"{one.score.runs}",
            _percent(one.score.found),
            _percent(one.score.curve_covered, one.score.by_curve),
            _percent(one.score.whole_covered),
            f"{_percent(one.bias, signed=True)} ± {_percent(one.bias_error)}",
            _percent(one.score.half_width),
            f"{one.score.seconds:.0f}",
        )
        for check in found
        for one in (check.composed, check.simulated)
    ]
    return _table("Composed runs against fully simulated ones, --refine", head, rows) if rows else ""


def fits(found: Sequence[FitError]) -> str:
    """The cost model's error on speed-ups."""
    head = ("generator", "levels foretold", "median error", "largest error")
    rows = [(one.generator, ", ".join(map(str, one.levels)), f"{one.median:.1%}", f"{one.worst:.1%}") for one in found]
    return _table("Fitted step cost: error of the foretold speed-ups (goal: 5 %)", head, rows)


def verify(found: Sequence[VerifyScore]) -> str:
    """Verdicts on claims of known truth."""
    head = ("the claimed server is", "holds", "does not hold", "not resolved", "margin (median)")
    rows = [
        (one.claim, _percent(one.holds), _percent(one.fails), _percent(one.open), _percent(one.margin)) for one in found
    ]
    return _table("loadgen verify, six loads, three repeats", head, rows)


def write_between_marks(path: Path, text: str) -> None:
    """Replaces what stands between the file's marks; ValueError if it has none."""
    whole = path.read_text(encoding="utf-8")
    before, begin, rest = whole.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{path} has no marks {BEGIN} and {END}")
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def _percent(value: float | None, of: int | None = None, *, signed: bool = False) -> str:
    if value is None:
        return "-"
    number = (f"{value:+.1%}" if signed else f"{value:.1%}") if value != float("inf") else "∞"
    return number if of is None else f"{number} of {of}"


def _table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"**{title}**", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])
