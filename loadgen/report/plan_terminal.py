"""The plan in a terminal."""

from collections.abc import Iterator
from pathlib import Path

from rich import box
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from loadgen.analysis.capacity_model import Plan
from loadgen.report import plan_rows
from loadgen.report.words import clean, unmarked


def print_plan(console: Console, plan: Plan, page: Path | None = None) -> None:
    """Prints the settings by workload, the pools, the answer, what to mind, and the page's path."""
    parts = list(_parts(console, plan))
    if page is not None:
        parts += [Text(""), Text.assemble("Plan: ", (str(page), "bold"), overflow="fold")]
    console.print(Group(*parts), highlight=False)


def _parts(console: Console, plan: Plan) -> Iterator[RenderableType]:
    for name, value in plan_rows.facts(plan)[:3]:
        yield Text(f"{name}: {value}")
    for group in plan_rows.groups(plan):
        yield Text("")
        yield Text(group.title, style="bold")
        yield from _tables(console, plan_rows.offer_table(plan, group.offers))
    for meaning in plan_rows.MEANINGS[: 2 if plan.demand is None else 3]:
        yield Text(meaning, style="dim")
    yield Text("")
    for where, setting, reason in plan_rows.advice_lines(plan):
        yield Text(f"{setting} for {where}: {reason}.")
    if plan.mix:
        yield Text("")
        yield from _tables(console, plan_rows.pool_table(plan.mix.pools))
    title = "SIMULATED" if plan.simulated else "Answer"
    yield Panel(
        Text(unmarked(plan.answer) if plan.simulated else clean(plan.answer), style="bold"),
        title=title,
        title_align="left",
        box=box.ROUNDED,
    )
    for note in plan.notes:
        yield Text(f"- {clean(note)}", style="yellow")


def _tables(console: Console, rows: plan_rows.Table) -> Iterator[Table]:
    """The table, in as many parts as the width takes, each with the first column: no word is broken."""
    count, start = len(rows[0]), 1
    while start < count:
        end = count
        while end > start + 1 and _width(console, _table(rows, start, end)) > console.width:
            end -= 1
        yield _table(rows, start, end)
        start = end


def _width(console: Console, table: Table) -> int:
    return Measurement.get(console, console.options.update(max_width=10_000), table).maximum


def _table(rows: plan_rows.Table, start: int, end: int) -> Table:
    """The first column, and those from `start` up to `end`."""
    header, body = rows
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for i in (0, *range(start, end)):
        table.add_column(header[i], justify="left" if i == 0 else "right", overflow="fold")
    for row in body:
        table.add_row(*(Text(clean(row[i])) for i in (0, *range(start, end))))
    return table
