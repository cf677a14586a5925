"""The plan in a terminal."""

from collections.abc import Iterator
from pathlib import Path

from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from loadgen.analysis.capacity_model import Plan
from loadgen.report import plan_rows
from loadgen.report.words import clean, unmarked


def print_plan(console: Console, plan: Plan, page: Path | None = None) -> None:
    """Prints the settings by workload, the pools, the answer, what to mind, and the page's path."""
    parts = list(_parts(plan))
    if page is not None:
        parts += [Text(""), Text.assemble("Plan: ", (str(page), "bold"), overflow="fold")]
    console.print(Group(*parts), highlight=False)


def _parts(plan: Plan) -> Iterator[RenderableType]:
    for name, value in plan_rows.facts(plan)[:3]:
        yield Text(f"{name}: {value}")
    for group in plan_rows.groups(plan):
        yield Text("")
        yield Text(group.title, style="bold")
        yield _table(plan_rows.offer_table(plan, group.offers))
    for meaning in plan_rows.MEANINGS[: 2 if plan.demand is None else 3]:
        yield Text(meaning, style="dim")
    yield Text("")
    for where, setting, reason in plan_rows.advice_lines(plan):
        yield Text(f"{setting} for {where}: {reason}.")
    if plan.mix:
        yield Text("")
        yield _table(plan_rows.pool_table(plan.mix.pools))
    title = "SIMULATED" if plan.simulated else "Answer"
    yield Panel(
        Text(unmarked(plan.answer) if plan.simulated else clean(plan.answer), style="bold"),
        title=title,
        title_align="left",
        box=box.ROUNDED,
    )
    for note in plan.notes:
        yield Text(f"- {clean(note)}", style="yellow")


def _table(rows: plan_rows.Table) -> Table:
    header, body = rows
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for i, name in enumerate(header):
        table.add_column(name, justify="left" if i == 0 else "right", overflow="fold")
    for row in body:
        table.add_row(*(Text(clean(cell)) for cell in row))
    return table
