"""A diagnostic cell beside the verdict cells of its own place, and of no other."""

from dataclasses import replace
from typing import Any

import pytest

from loadgen.analysis.diagnostic import DiagnosticFinding, Spread, diagnose
from loadgen.load.summary import distribution
from loadgen.store.diagnostic import REPEAT, DiagnosticCell
from loadgen.store.model import CellResult


def diagnosed(like: CellResult, rate: float) -> DiagnosticCell:
    return DiagnosticCell(
        key=replace(like.key, repeat=REPEAT),
        started_at="",
        window_s=2.5,
        output_tokens_per_s=rate,
        requests=20,
        uncounted=0,
        tpot_s=distribution([0.02]),
        tokens_per_chunk=distribution([1, 1, 5, 5]),
        chunks_by_tokens=((1, 30), (5, 10)),
        acceptance_rate=distribution([]),
        acceptance_length=distribution([]),
    )


def found(cell: Any, rate: float, rates: tuple[float, ...]) -> DiagnosticFinding:
    cells = [cell("ngram", 8, repeat, tokens_per_s=rate) for repeat, rate in enumerate(rates)]
    elsewhere = [cell("ngram", 16, 0, tokens_per_s=9.0), cell("baseline", 8, 0, tokens_per_s=9.0)]
    other_session = replace(elsewhere[0], key=replace(elsewhere[0].key, level=8, session=1))
    (one,) = diagnose([diagnosed(cell("ngram", 8, 0), rate)], [*elsewhere, other_session, *cells])
    return one


def test_the_cost_is_the_ratio_to_the_same_place(cell: Any) -> None:
    one = found(cell, 900.0, (950.0, 1000.0, 1050.0))
    assert one.tokens_per_s_without == Spread(1000.0, 950.0, 1050.0, 3)
    assert one.throughput_ratio == pytest.approx(0.9)
    assert one.beyond_scatter
    assert one.chunk_shares == ((1, 0.75), (5, 0.25))


@pytest.mark.parametrize("rates", [(890.0, 910.0), (1000.0,)])
def test_one_cell_or_one_among_the_others_is_no_cost(cell: Any, rates: tuple[float, ...]) -> None:
    assert not found(cell, 900.0, rates).beyond_scatter


def test_without_a_cell_beside_it_there_is_no_ratio(cell: Any) -> None:
    one = found(cell, 900.0, ())
    assert (one.tokens_per_s_without, one.tpot_s_without, one.throughput_ratio) == (None, None, None)
