"""A comparison of two runs as a terminal text and as JSON."""

from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from loadgen.analysis.compare import Change, Comparison
from loadgen.analysis.model import BreakEven
from loadgen.report.summary import plain
from loadgen.report.words import STATUS_WORDS, clean, condition_words, crossing_words, interval, ratio

NOUNS = {"output_tokens_per_s": "as many", "tpot": "as long", "ttft": "as long"}
DIRECTION = "second run / first run: more tokens/s are better, longer TPOT and TTFT are worse"
STYLES = {True: "green", False: "red", None: ""}


def comparison_data(found: Comparison) -> dict[str, Any]:
    """The comparison as JSON types; schema 1."""
    whole = {
        "schema": 1,
        "before": found.before,
        "after": found.after,
        "simulated": {"before": found.simulated[0], "after": found.simulated[1]},
        "sentence": found.sentence,
        "differences": [asdict(difference) for difference in found.differences],
        "notes": found.notes,
        "changes": [_change(change) for change in found.changes],
        "break_evens": [
            {
                "workload": turn.condition.workload,
                "input_tokens": turn.condition.input_tokens,
                "temperature": turn.condition.temperature,
                "profile": turn.profile,
                "before": turn_words(turn.before),
                "after": turn_words(turn.after),
            }
            for turn in found.turns
        ],
        "surely_worse": len(found.surely_worse),
    }
    data: dict[str, Any] = plain(whole)
    return data


def turn_words(found: BreakEven) -> str:
    """`turns at 12 (95 % CI 8 to 15)`."""
    turns = ", ".join(crossing_words(crossing, indicative=found.indicative) for crossing in found.crossings)
    return f"{STATUS_WORDS[found.status]}{f' at {turns}' if turns else ''}{' (indicative)' if found.indicative else ''}"


def print_comparison(console: Console, found: Comparison) -> None:
    """Prints what differs, a table a condition, the break-evens and the answer."""
    before, after = (
        f"{clean(name)}{' (SIMULATED)' if simulated else ''}"
        for name, simulated in zip((found.before, found.after), found.simulated, strict=True)
    )
    parts: list[RenderableType] = [Text(f"{before} → {after}", style="bold")]
    parts += [Text(f"  {d.field}: {clean(d.before)} → {clean(d.after)}") for d in found.differences]
    if not found.differences:
        parts.append(Text("  made in the same way"))
    for condition in dict.fromkeys(change.condition for change in found.changes):
        parts += [Text(""), Text(condition_words(condition), style="bold")]
        parts.append(Text(DIRECTION, style="dim"))
        parts.append(_table([change for change in found.changes if change.condition == condition]))
        for turn in found.turns:
            if turn.condition == condition:
                parts.append(Text(f"{clean(turn.profile)}: {turn_words(turn.before)} → {turn_words(turn.after)}"))
    title = "SIMULATED" if any(found.simulated) else None
    parts += [
        Text(""),
        Panel(Text(clean(found.sentence), style="bold"), box=box.ROUNDED, title=title, title_align="left"),
    ]
    parts += [Text(f"- {clean(note)}", style="yellow") for note in found.notes]
    console.print(Group(*parts), highlight=False)


def _table(changes: list[Change]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for name in ("profile", "in flight", "tokens/s", "TPOT", "TTFT", "n"):
        table.add_column(name, justify="left" if name == "profile" else "right")
    for profile, level in dict.fromkeys((change.profile, change.concurrency) for change in changes):
        own = {c.measure: c for c in changes if (c.profile, c.concurrency) == (profile, level)}
        cells = [_cell(own.get(name)) for name in ("output_tokens_per_s", "tpot", "ttft")]
        sizes = next(iter(own.values())).n
        table.add_row(Text(clean(profile)), str(level), *cells, f"{sizes[0]}, {sizes[1]}")
    return table


def _cell(change: Change | None) -> Text:
    if change is None:
        return Text("n/a")
    bounds = interval(change.ratio.ci95)
    lines = [
        f"{ratio(change.ratio)} {NOUNS[change.measure]}",
        *([f"({bounds})"] if bounds else []),
        verdict_words(change),
    ]
    return Text("\n".join(line for line in lines if line), style=STYLES[change.better])


def verdict_words(change: Change) -> str:
    """`better`, `worse`, `within noise`; empty without an interval."""
    if change.better is None:
        return "within noise" if change.ratio.ci95 else ""
    return "better" if change.better else "worse"


def _change(change: Change) -> dict[str, Any]:
    return {
        "workload": change.condition.workload,
        "input_tokens": change.condition.input_tokens,
        "temperature": change.condition.temperature,
        "profile": change.profile,
        "concurrency": change.concurrency,
        "measure": change.measure,
        "ratio": change.ratio.value,
        "ratio_is": "after / before",
        "more_is_better": change.measure == "output_tokens_per_s",
        "ci95": change.ratio.ci95,
        "n": change.n,
        "better": change.better,
        "p_value": change.p_value,
    }
