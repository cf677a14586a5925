"""cells.csv: one row a cell, units in the names, no formula from outside."""

import csv
import io
import math
from dataclasses import replace

import pytest

from loadgen.report.cells_csv import cells_csv, quote_formula
from loadgen.store.model import CellResult


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_one_row_a_cell_in_order(cells: tuple[CellResult, ...]) -> None:
    found = rows(cells_csv(reversed(cells)))
    assert [int(r["order"]) for r in found] == list(range(len(cells)))
    ngram = next(r for r in found if r["profile"] == "ngram")
    assert float(ngram["ttft_p99_s"]) == 0.1
    assert ngram["ttft_n"] == "40"
    assert ngram["requests_timeout"] == "1"
    assert float(ngram["server_acceptance_rate"]) == pytest.approx(0.45)
    assert ngram["server_acceptance_per_position"].count(";") == 3


def test_what_a_server_does_not_have_is_empty(cells: tuple[CellResult, ...]) -> None:
    without = replace(cells[0], window=None, steal_share=math.nan)
    (row,) = rows(cells_csv([without]))
    assert row["server_drafts"] == ""
    assert row["server_acceptance_rate"] == ""
    assert row["steal_share"] == ""


def test_no_cells_still_give_the_columns() -> None:
    assert cells_csv([]).startswith("order,started_at,profile,")
    assert rows(cells_csv([])) == []


@pytest.mark.parametrize("simulated", [True, False])
def test_each_row_says_whether_a_simulator_gave_it(cells: tuple[CellResult, ...], simulated: bool) -> None:
    assert {row["simulated"] for row in rows(cells_csv(cells, simulated=simulated))} == {str(simulated)}


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-2", "@sum", "  =1", "\t=1", "|calc"])
def test_c102_formulas_from_outside_are_quoted(text: str, cells: tuple[CellResult, ...]) -> None:
    assert quote_formula(text) == f"'{text}"
    bad = replace(cells[0], key=replace(cells[0].key, profile=text), warnings=(text,))
    (row,) = rows(cells_csv([bad]))
    assert row["profile"].startswith("'")
    assert row["warnings"].startswith("'")


def test_plain_text_stays() -> None:
    assert quote_formula("ngram") == "ngram"
