from collections import Counter
from dataclasses import replace

import pytest

from loadgen.store.model import CellKey, Condition
from loadgen.sweep.plan import CellShape, SweepPlan, all_cells, level_order, stages

PLAN = SweepPlan(
    profiles=("baseline", "ngram"),
    conditions=(Condition("code-edit", 300, 0.0), Condition("chat", 60, 0.0)),
    levels=(1, 2, 4, 8),
    repeats=3,
    seed=7,
    order="together",
)


@pytest.mark.parametrize("order", ["together", "blocks", "alternate"])
@pytest.mark.parametrize("sessions", [1, 2])
def test_every_cell_is_planned_once(order: str, sessions: int) -> None:
    cells = all_cells(replace(PLAN, order=order, sessions=sessions))
    assert max(Counter(cells).values()) == 1
    assert len(cells) == 2 * 2 * 4 * 3 * sessions


def test_together_alternates_a_b_b_a_and_pairs_stand_side_by_side() -> None:
    (stage,) = stages(PLAN)
    assert stage.profiles == ("baseline", "ngram")
    pairs = list(zip(stage.cells[::2], stage.cells[1::2], strict=True))
    assert all(replace(a, profile="") == replace(b, profile="") for a, b in pairs)
    first = [a.profile for a, _ in pairs]
    assert Counter(first) == {"baseline": 12, "ngram": 12}


def test_blocks_have_one_server_at_a_time_in_turned_order_by_session() -> None:
    plan = replace(PLAN, order="alternate", sessions=2)
    assert [stage.profiles for stage in stages(plan)] == [("baseline",), ("ngram",), ("ngram",), ("baseline",)]


def test_levels_come_in_the_same_order_for_all_profiles() -> None:
    baseline, ngram = stages(replace(PLAN, order="blocks"))
    assert [replace(k, profile="") for k in baseline.cells] == [replace(k, profile="") for k in ngram.cells]


def test_odd_repeats_reverse_the_level_order_and_the_seed_moves_it() -> None:
    assert level_order(PLAN, 0, 1, 0) == level_order(PLAN, 0, 0, 0)[::-1]
    orders = {level_order(replace(PLAN, seed=seed), 0, 0, 0) for seed in range(20)}
    assert len(orders) > 5


def test_repeats_are_outermost_so_that_a_stopped_run_has_all_levels() -> None:
    half = all_cells(PLAN)[: len(all_cells(PLAN)) // 3]
    assert {key.level for key in half} == {1, 2, 4, 8}
    assert {key.repeat for key in half} == {0}


def test_a_key_names_its_cell() -> None:
    assert str(CellKey("ngram", PLAN.conditions[0], 8, 2)) == "ngram/code-edit/300/t0/L8/r2/s0"


@pytest.mark.parametrize(
    ("level", "request_s", "settle_s"), [(1, 9.0, 0.1), (2, 4.0, 2.0), (64, 2.0, 1.96875), (8, 999.0, 60.0)]
)
def test_a_window_opens_when_the_start_is_forgotten(level: int, request_s: float, settle_s: float) -> None:
    """Issue 4: a request's duration after the last worker began; one worker alone has no others to wait for."""
    assert CellShape().settle_for(level, request_s) == settle_s
