import random
from collections.abc import Callable
from typing import Any

import pytest

from loadgen.analysis.next_cells import level_limit, next_cells
from loadgen.store.model import CellKey, CellResult, Manifest

RATIOS = {1: 1.7, 2: 1.6, 4: 1.35, 8: 1.1, 16: 0.95, 32: 0.8}


def ask(manifest: Manifest, cells: list[CellResult]) -> tuple[CellKey, ...]:
    return next_cells(manifest, cells, highest=256, wanted=0.1, looks=5)


def test_a_bracket_gets_three_pairs_where_its_line_turns(
    run_of: Callable[..., list[CellResult]], manifest: Callable[..., Manifest]
) -> None:
    cells = run_of(RATIOS)
    random.Random(3).shuffle(cells)
    found = ask(manifest(), cells)
    # The line through 8 and 16 passes 1 at 12.7.
    assert {key.level for key in found} == {13}
    assert sorted((key.profile, key.repeat) for key in found) == [
        (name, repeat) for name in ("baseline", "ngram") for repeat in range(3)
    ]
    # A B B A: neither server is always the first one.
    assert [key.profile for key in found[::2]] == ["baseline", "ngram", "baseline"]


def test_the_first_pass_of_single_repeats_gets_its_second_and_third(
    run_of: Callable[..., list[CellResult]], manifest: Callable[..., Manifest]
) -> None:
    found = ask(manifest(), run_of(RATIOS, noise=(1.0,)))
    assert {(key.level, key.repeat) for key in found} >= {(8, 1), (8, 2), (16, 1), (16, 2)}
    assert not any(key.repeat == 0 for key in found)


def test_profiles_without_speculation_are_not_refined(
    run_of: Callable[..., list[CellResult]], manifest: Callable[..., Manifest]
) -> None:
    cells = run_of(RATIOS, profile="baseline-sync")
    given = manifest(("baseline", "baseline-sync"), methods={"baseline": "none", "baseline-sync": "none"})
    assert ask(given, cells) == ()


def test_later_sessions_do_not_decide(
    run_of: Callable[..., list[CellResult]], manifest: Callable[..., Manifest], cell: Callable[..., Any]
) -> None:
    cells = run_of(RATIOS)
    assert ask(manifest(), cells + run_of({9: 1.2}, session=1)) == ask(manifest(), cells)


def test_a_baseline_cell_that_stands_is_not_asked_again(
    run_of: Callable[..., list[CellResult]], manifest: Callable[..., Manifest], cell: Callable[..., CellResult]
) -> None:
    cells = [*run_of(RATIOS), cell("baseline", 13, 0, 900.0)]
    found = ask(manifest(), cells)
    assert CellKey("baseline", cells[0].key.condition, 13, 0) not in found
    assert CellKey("ngram", cells[0].key.condition, 13, 0) in found


def test_a_level_that_was_void_is_tried_again(
    run_of: Callable[..., list[CellResult]], manifest: Callable[..., Manifest], cell: Callable[..., CellResult]
) -> None:
    cells = [*run_of(RATIOS), cell("baseline", 64, 0, 900.0), cell("ngram", 64, 0, 900.0, outcomes={"http_5xx": 40})]
    assert {key.repeat for key in ask(manifest(), cells) if key.level == 64} == {1}


@pytest.mark.parametrize(("told", "limit"), [([0, 64], 64), ([0], 256), ([], 256)])
def test_the_limit_is_the_servers_own(told: list[int], limit: int) -> None:
    assert level_limit(told) == limit
