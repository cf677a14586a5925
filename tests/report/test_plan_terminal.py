"""The plan at 80 columns: no cell and no heading is broken."""

import io

import pytest
from rich.console import Console

from loadgen.report.plan_terminal import _tables

HEADER = ["setting", "in flight", "users / server", "servers", "GPUs", "users / GPU", "cost / 1M", "if acceptance −1/3"]
ROW = [
    "ngram-schedule-k0",
    "32+ (sure: 16)",
    "510+ (surely 494)",
    "14 / 17 / 18",
    "≤ 18",
    "111",
    "0.91",
    "123, 21 GPUs",
]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_each_cell_stands_on_one_line(width: int) -> None:
    out = io.StringIO()
    console = Console(file=out, width=width)
    for table in _tables(console, (HEADER, [ROW])):
        console.print(table)
    text = out.getvalue()
    assert all(cell in text for cell in (*HEADER, *ROW))
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    # every part names its setting
    assert text.count(ROW[0]) == text.count("setting")
    assert (text.count(ROW[0]) == 1) is (width == 200)
