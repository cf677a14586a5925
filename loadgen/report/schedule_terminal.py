"""The ladder, the schedule and the verification in a terminal."""

from collections.abc import Iterator

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from loadgen.report.schedule_sections import Section
from loadgen.report.words import clean

STYLES = {"gain": "green", "loss": "red", "": "yellow"}


def section_parts(section: Section) -> Iterator[RenderableType]:
    """The section as renderables: title, table, sentences."""
    yield Text("")
    title = Text(clean(section.title), style="bold")
    if section.tag:
        title.append(f"  {section.tag}", style=STYLES[section.tone])
    yield title
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for name in section.header:
        table.add_column(clean(name), justify="right", overflow="fold")
    for row in section.rows:
        table.add_row(*(clean(cell) for cell in row))
    if section.rows:
        yield table
    for text in (*section.lead, *section.notes):
        yield Padding(Text(clean(text)), (0, 0, 0, 2), expand=False)
