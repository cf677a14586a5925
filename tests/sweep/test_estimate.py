"""How long a sweep takes, said before and while it runs."""

from dataclasses import replace

import pytest

from loadgen.store.model import CellKey, Condition
from loadgen.sweep.estimate import CPU, GPU, SIMULATOR, TimeLeft, speed_of
from loadgen.sweep.plan import CellShape, SweepPlan, all_cells, stage_starts
from loadgen.workloads.base import Sampling

CONDITION = Condition("code-edit", 512, 0.0)


def key(level: int, repeat: int = 0, profile: str = "baseline") -> CellKey:
    return CellKey(profile, CONDITION, level, repeat, 0)


# Seconds from one cell's start to the next one's, as the simulator took them on two cores beside other work.
@pytest.mark.parametrize(("level", "took_s"), [(1, 3.7), (4, 4.1), (16, 6.5), (32, 9.1), (128, 35.5), (512, 125.0)])
def test_the_simulators_cells_before_any_was_measured(level: int, took_s: float) -> None:
    assert took_s / 1.5 < TimeLeft(CellShape()).cell_s(key(level)) < 1.5 * took_s


def test_a_level_of_thousands_is_no_matter_of_seconds() -> None:
    """What was announced for it was the window and 1.6 s."""
    assert TimeLeft(CellShape()).cell_s(key(4096)) > 300


def test_the_wanted_requests_lengthen_the_window() -> None:
    plain, many = TimeLeft(CellShape(), GPU), TimeLeft(CellShape(min_requests=20, requests_per_worker=4), GPU)
    assert many.cell_s(key(1)) > plain.cell_s(key(1)) + 10
    assert many.cell_s(key(8)) > plain.cell_s(key(8)) + 2


def test_a_measured_level_moves_its_neighbours() -> None:
    left = TimeLeft(CellShape())
    before = left.cell_s(key(64))
    left.learn(key(32), 10 * 110 * (0.0035 + 32 * 0.0005), 40.0)
    assert left.cell_s(key(32)) == 40.0
    assert left.cell_s(key(64)) > 3 * before


def test_the_nearest_level_counts_and_the_own_profile_first() -> None:
    left = TimeLeft(CellShape())
    left.learn(key(1), 0.4, 4.0)
    left.learn(key(512), 30.0, 200.0)
    left.learn(key(256, profile="ngram"), 3000.0, 9000.0)
    assert left.cell_s(key(256)) < 400
    assert left.cell_s(key(2)) < 10


def test_an_earlier_processs_cells_tell_how_long_requests_are() -> None:
    left, fresh = TimeLeft(CellShape()), TimeLeft(CellShape())
    left.learn(key(8), 20.0, None)
    assert left.cell_s(key(8, repeat=1)) > 2 * fresh.cell_s(key(8, repeat=1))


def test_a_cell_without_one_answer_teaches_nothing() -> None:
    left = TimeLeft(CellShape())
    left.learn(key(8), None, 1.0)
    assert left.cell_s(key(8)) == TimeLeft(CellShape()).cell_s(key(8))


def test_servers_starts_count_and_are_learnt() -> None:
    plan = SweepPlan(("baseline", "ngram"), (CONDITION,), (1,), 1, 1, "alternate", sessions=2)
    cells = all_cells(plan)
    left = TimeLeft.of(plan, GPU)
    assert len(stage_starts(cells, together=False)) == 4
    assert len(stage_starts(cells, together=True)) == 2
    assert left.remaining_s(cells, 4) == pytest.approx(left.remaining_s(cells) + 4 * GPU.start_s)
    left.learn_start(30.0)
    assert left.remaining_s(cells, 4) == pytest.approx(left.remaining_s(cells) + 120.0)


def test_forced_lengths_count_whole() -> None:
    plan = SweepPlan(("baseline",), (CONDITION,), (8,), 1, 1, "together", max_tokens=2000)
    forced = replace(plan, sampling=Sampling(ignore_eos=True))
    assert TimeLeft.of(forced, GPU).cell_s(key(8)) > 5 * TimeLeft.of(plan, GPU).cell_s(key(8))


def test_which_engine_is_how_fast() -> None:
    assert speed_of(simulated=True, slow=False, running=False) == SIMULATOR
    assert speed_of(simulated=False, slow=True, running=False) == CPU
    assert speed_of(simulated=False, slow=False, running=True).start_s < GPU.start_s
