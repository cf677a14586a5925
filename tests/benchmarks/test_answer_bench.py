"""A small answer bench: the same designs and scores on written curves, in seconds."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks.answer import table
from benchmarks.answer.bank import Cells, Machine
from benchmarks.answer.costfit import power_law, written
from benchmarks.answer.design import Design, Outcome, carry_out
from benchmarks.answer.full import full_check
from benchmarks.answer.parts import READINGS, parts
from benchmarks.answer.savings import Fixed, seconds_at
from benchmarks.answer.score import Score, score, true_statement
from benchmarks.answer.world import World, smooth
from loadgen.analysis.model import BreakEven, BreakEvenStatus

GRID = (1, 2, 4, 8, 16, 32)
REFINE = Design("--refine", 1, refine=True)
NOISE = {level: np.random.default_rng(0).normal(0, 0.025, 400) for level in range(1, 33)}


def world(curve: Callable[[int], float], **more: float) -> World:
    return World("written", curve, NOISE, dict.fromkeys(NOISE, 5.0), GRID, 32, **more)


def straight(level: int) -> float:
    return -0.25 * math.log2(level / 10.4)


def scored(place: World, design: Design, runs: int) -> Score:
    rng = np.random.default_rng(5)
    return score(place, design.name, [carry_out(place, design, rng) for _ in range(runs)], sessions=design.sessions)


def test_refined_intervals_cover_and_are_narrow() -> None:
    found = scored(world(straight), REFINE, 120)
    assert found.found >= 0.95
    assert found.curve_covered is not None
    assert found.curve_covered >= 0.91
    assert found.half_width is not None
    assert found.half_width <= 0.10
    # 6 levels with 3 repeats each, 5 s a pair.
    assert found.seconds <= 2.5 * 90


def test_a_fixed_grid_gives_its_bracket() -> None:
    found = scored(world(straight), Design("grid", 3, refine=False), 60)
    assert (found.by_curve, found.bracket_covered) == (0, 1.0)
    assert found.half_width == pytest.approx(0.354, abs=0.001)


def test_no_crossing_is_seldom_found_where_there_is_none() -> None:
    found = scored(world(lambda level: -1e-9 if level < 16 else -0.2), REFINE, 100)
    assert found.false_found is not None
    assert found.false_found <= 0.10


def test_a_cliff_is_held() -> None:
    found = scored(world(lambda level: 0.09 if level <= 21 else -0.46), REFINE, 40)
    assert found.covered == 1.0


def test_sessions_hold_for_starts_to_come() -> None:
    found = scored(world(straight, start_sd=0.01), Design("s", 1, refine=True, sessions=4), 60)
    assert found.curve_covered is not None
    assert found.curve_covered >= 0.88


def test_the_truth_of_a_curve_is_its_sign_changes() -> None:
    ((place, direction),) = world(straight).crossings()
    assert place == pytest.approx(10.4, abs=0.01)
    assert direction == "down"
    assert world(lambda level: 0.25 * math.cos(math.pi * math.log2(level) / 2.5)).crossings()[1][1] == "up"


@pytest.mark.parametrize(
    ("status", "gains", "losses", "true"),
    [
        (BreakEvenStatus.PAYS_THROUGHOUT, (8,), (), True),
        (BreakEvenStatus.PAYS_THROUGHOUT, (32,), (), False),
        (BreakEvenStatus.NEVER_PAYS, (), (16,), True),
        (BreakEvenStatus.NEVER_PAYS, (), (4,), False),
        (BreakEvenStatus.INCONCLUSIVE, (4,), (), True),
    ],
)
def test_censored_statuses_are_scored_as_one_sided(
    status: BreakEvenStatus, gains: tuple[int, ...], losses: tuple[int, ...], true: bool
) -> None:
    verdict = BreakEven(status, (), "", sure_gains=gains, sure_losses=losses)
    assert true_statement(verdict, [(10.4, "down")]) is true


def test_a_crossing_where_there_is_none_is_false() -> None:
    rng = np.random.default_rng(1)
    outcome: Outcome = carry_out(world(straight), REFINE, rng)
    assert true_statement(outcome.verdict, [(10.4, "down")])
    assert not true_statement(outcome.verdict, [])


def test_noise_is_the_banks_and_slow_phases_only_slow() -> None:
    place = world(straight, slow_share=1.0)
    rng = np.random.default_rng(2)
    drawn = np.array(place.draw(rng, 8, 2000, 0.0)) - straight(8)
    # Always slow on both sides: the ratio is left as it was.
    assert abs(drawn.mean()) < 0.003


def test_a_smooth_curve_passes_through_its_points() -> None:
    curve = smooth({1: 0.5, 8: 0.1, 32: -0.2})
    assert [round(curve(level), 9) for level in (1, 8, 32)] == [0.5, 0.1, -0.2]
    assert curve(64) == curve(32)


def test_the_cost_fit_stays_near_a_generator_of_another_form() -> None:
    found = written("power law", power_law, 3.2, 2.2, (3, 6, 12, 24))
    assert found.median <= 0.05


def test_a_grids_seconds_are_read_at_the_same_half_width() -> None:
    grids = [Fixed(6, math.inf, 60.0), Fixed(12, 0.2, 100.0), Fixed(24, 0.05, 400.0)]
    assert seconds_at(grids, 0.1) == pytest.approx(200.0)
    assert seconds_at(grids, 0.05) == pytest.approx(400.0)
    # Between a grid that finds nothing and one that does, only the second one's seconds are known.
    assert seconds_at(grids, 0.3) == 100.0
    assert seconds_at(grids, 0.01) is None


def test_less_held_possible_is_a_narrower_interval() -> None:
    found = parts(world(straight), REFINE, 40)
    assert [one.design for one in found] == [name for name, _ in READINGS]
    # A cliff that is not held possible changes little where the levels show none.
    widths = [one.exact_half_width or 0.0 for one in found]
    assert widths[1] > 1.1 * widths[2] > 1.1 * widths[3] > 0.0


class WrittenCells(Cells):
    """Cells whose ln ratio is a formula with noise, 3 % off."""

    def __init__(self) -> None:
        super().__init__(Machine("rtx5090-8b-int4", "chat", "mtp", (1, 2, 4, 8)))

    def ln_ratio(self, level: int, number: int) -> float:
        return straight(level) + 0.25 * math.log2(1.03) + float(np.random.default_rng((level, number)).normal(0, 0.02))


def test_fully_simulated_runs_show_what_composed_ones_hide() -> None:
    found = full_check(world(straight), WrittenCells(), REFINE, 20)
    assert (found.composed.score.runs, found.simulated.score.runs) == (200, 20)
    assert abs(found.composed.bias) <= 0.01
    assert found.simulated.bias == pytest.approx(0.03, abs=0.015)


def test_a_cells_window_is_where_its_start_is_forgotten() -> None:
    """Issue 4: windows that opened at once gave ratios up to 0.8 % high; the truth is of the same prompts."""
    cells = Cells(Machine("rtx5090-8b-int4", "chat", "mtp", (4,), seed=5))
    ratios = [cells.ln_ratio(4, number) for number in range(8)]
    error = float(np.std(ratios, ddof=1)) / math.sqrt(len(ratios))
    assert np.mean(ratios) == pytest.approx(math.log(cells.truth.level(4).speedup), abs=4 * error + 0.01)


def test_tables_go_between_the_marks(tmp_path: Path) -> None:
    page = tmp_path / "m.md"
    page.write_text(f"a\n{table.BEGIN}\nold\n{table.END}\nb\n", encoding="utf-8")
    table.write_between_marks(page, "new")
    assert page.read_text(encoding="utf-8") == f"a\n{table.BEGIN}\nnew\n{table.END}\nb\n"
    (tmp_path / "n.md").write_text("nothing", encoding="utf-8")
    with pytest.raises(ValueError, match="no marks"):
        table.write_between_marks(tmp_path / "n.md", "new")
