import math

import numpy as np
import pytest

from loadgen.analysis.breakeven import find_break_even, repeats_needed, spans
from loadgen.analysis.model import BreakEven, BreakEvenStatus
from loadgen.analysis.ratios import mean_and_sd
from loadgen.analysis.signs import LevelStat, sure_signs


def stats_of(ratios: dict[int, float], sd: float | None = 0.01, n: int = 3) -> list[LevelStat]:
    return [LevelStat(level, math.log(ratio), n, sd) for level, ratio in ratios.items()]


def verdict(ratios: dict[int, float], sd: float | None = 0.01, n: int = 3) -> BreakEven:
    return find_break_even(stats_of(ratios, sd, n))


def test_h200_k3_turns_between_64_and_128() -> None:
    found = verdict({1: 1.63, 2: 1.52, 4: 1.51, 8: 1.47, 16: 1.35, 32: 1.35, 64: 1.10, 128: 0.63})
    (crossing,) = found.crossings
    # reference/h200.md gives about 74.
    assert (crossing.concurrency, crossing.ci95) == (72.0, (64.0, 127.0))


def test_pays_throughout_says_how_to_go_on() -> None:
    found = verdict({1: 1.7, 8: 1.5, 32: 1.3})
    assert found.status is BreakEvenStatus.PAYS_THROUGHOUT
    assert found.sentence.endswith("still 1.30x at 32: extend with --levels")


def test_a_draw_at_the_lowest_level_does_not_save_a_loss_everywhere_above() -> None:
    assert verdict({1: 0.999, 8: 0.9, 32: 0.7}).status is BreakEvenStatus.NEVER_PAYS


def test_a_leaning_gain_between_sure_losses_is_noise() -> None:
    assert verdict({1: 0.9, 8: 1.002, 32: 0.7}).status is BreakEvenStatus.NEVER_PAYS


def test_a_leaning_gain_at_the_edge_keeps_the_verdict_open() -> None:
    found = find_break_even(
        [LevelStat(1, 0.02, 3, 0.02), LevelStat(8, -0.2, 3, 0.02), LevelStat(32, -0.4, 3, 0.02)], pair_seconds={1: 5.0}
    )
    assert found.status is BreakEvenStatus.INCONCLUSIVE
    assert "surely costs at 8, 32" in found.sentence
    assert "more repeats at 1 (about" in found.sentence


def test_a_sure_gain_without_a_loss_above_is_inconclusive_and_says_which_level_to_add() -> None:
    found = verdict({1: 1.7, 8: 1.3, 16: 1.0})
    assert found.status is BreakEvenStatus.INCONCLUSIVE
    assert "add --levels 32" in found.sentence


def test_unsure_levels_widen_the_bracket() -> None:
    found = verdict({1: 1.7, 4: 1.3, 8: 1.003, 16: 0.997, 32: 0.7})
    assert [(c.level_below, c.level_above, c.ci95) for c in found.crossings] == [(4, 32, (4.0, 31.0))]


def test_crossings_that_come_back_are_all_reported() -> None:
    found = verdict({1: 1.3, 4: 0.8, 16: 1.3, 64: 0.8})
    assert found.status is BreakEvenStatus.FOUND
    assert [crossing.direction for crossing in found.crossings] == ["down", "up", "down"]
    assert found.sentence.startswith("turns several times: pays off up to 2 ")


def test_a_gain_only_at_high_load_is_an_upward_crossing() -> None:
    found = verdict({1: 0.8, 8: 0.9, 32: 1.2})
    assert [(c.direction, c.level_below, c.level_above) for c in found.crossings] == [("up", 8, 32)]
    assert "pays off above" in found.sentence


def test_neighbouring_levels_leave_one_answer() -> None:
    (crossing,) = verdict({7: 1.2, 8: 0.8}).crossings
    assert (crossing.concurrency, crossing.ci95) == (7.0, (7.0, 7.0))


@pytest.mark.parametrize(("sd", "n"), [(None, 1), (0.01, 2)])
def test_below_three_repeats_the_rule_is_indicative(sd: float | None, n: int) -> None:
    found = verdict({1: 1.3, 8: 1.04, 32: 0.8}, sd, n)
    assert (found.status, found.indicative) == (BreakEvenStatus.FOUND, True)
    assert found.sure_gains == (1,)


def test_a_wide_spread_raises_the_indicative_margin() -> None:
    assert verdict({1: 1.3, 32: 0.8}, sd=0.2, n=2).status is BreakEvenStatus.INCONCLUSIVE


def test_a_level_below_three_is_never_sure_among_others() -> None:
    levels = [*stats_of({1: 1.5, 8: 1.2}), LevelStat(32, -1.0, 2, 0.001)]
    assert sure_signs(levels).by_level[32] == 0


def test_no_level_at_all_is_inconclusive() -> None:
    found = find_break_even([])
    assert found.status is BreakEvenStatus.INCONCLUSIVE
    assert "no valid pair" in found.sentence


def test_repeats_needed_reach_a_sure_sign_and_give_up_on_a_draw() -> None:
    needed = repeats_needed(LevelStat(8, 0.05, 3, 0.05))
    assert needed is not None
    assert 6 <= needed <= 8
    assert repeats_needed(LevelStat(8, 0.001, 3, 0.05)) is None


def simulate(truth: dict[int, float], sds: dict[int, float], runs: int, seed: int) -> list[BreakEven]:
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(runs):
        levels = []
        for level, ratio in truth.items():
            mean, sd = mean_and_sd([float(x) for x in generator.normal(math.log(ratio), sds[level], 3)])
            levels.append(LevelStat(level, mean, 3, sd))
        found.append(find_break_even(levels))
    return found


LEVELS = (1, 2, 4, 8, 16, 32)
EVEN = dict.fromkeys(LEVELS, 0.03)
UNEVEN = {level: 0.10 / math.sqrt(level) for level in LEVELS}


@pytest.mark.parametrize("sds", [EVEN, UNEVEN], ids=["even-noise", "noisy-low-levels"])
@pytest.mark.parametrize("high", [1.0, 0.8], ids=["all-at-one", "draw-then-loss"])
def test_a_crossing_is_seldom_found_where_there_is_none(sds: dict[int, float], high: float) -> None:
    truth = {level: 1.0 if level < 16 else high for level in LEVELS}
    runs = simulate(truth, sds, 500, seed=11)
    false = sum(run.status is BreakEvenStatus.FOUND for run in runs)
    # Nominal 5 %; 500 runs have a standard error of 1 %, so that 8 % is three of them.
    assert false / len(runs) <= 0.08


@pytest.mark.parametrize("sds", [EVEN, UNEVEN], ids=["even-noise", "noisy-low-levels"])
def test_the_bracket_holds_the_true_crossing(sds: dict[int, float]) -> None:
    truth = {level: 1.5 - 0.12 * math.log2(level) * 1.1 for level in LEVELS}
    crossing = math.floor(2 ** (0.5 / 0.132))
    runs = simulate(truth, sds, 500, seed=12)
    found = [run for run in runs if run.status is BreakEvenStatus.FOUND]
    held = sum(any(c.ci95[0] <= crossing <= c.ci95[1] for c in run.crossings) for run in found)
    assert len(found) >= 400
    assert held / len(found) >= 0.95


@pytest.mark.parametrize("low", [1.0, 0.999, 1.01])
def test_a_gain_at_the_top_alone_is_no_gain_at_every_load(low: float) -> None:
    found = verdict(dict.fromkeys((1, 2, 4, 8, 16), low) | {32: 1.3}, sd=0.02)
    assert found.status is BreakEvenStatus.PAYS_THROUGHOUT
    assert found.sentence.startswith("gains at 32 (1.30x at 32); 1 to 16 not told from 1.0")
    assert "every load" not in found.sentence


def test_one_level_is_not_every_load() -> None:
    assert verdict({8: 1.5}).sentence == "gains at 8, the only level measured (1.50x): extend with --levels"


def test_a_lower_level_that_leans_to_a_loss_keeps_the_verdict_open() -> None:
    noisy = [LevelStat(1, math.log(0.7), 3, 0.4), LevelStat(2, math.log(0.85), 3, 0.4)]
    found = find_break_even([*noisy, *stats_of({4: 1.0, 8: 1.0, 16: 1.0, 32: 1.3}, sd=0.005)])
    assert (found.sure_gains, found.sure_losses) == ((32,), ())
    assert found.status is BreakEvenStatus.INCONCLUSIVE
    assert 1 in dict(found.wanted)
    assert "--levels" not in found.sentence


def test_rows_of_tested_levels_are_spans() -> None:
    assert spans([1, 2, 4, 16, 64], [1, 2, 4, 8, 16, 32, 64]) == "1 to 4, 16, 64"
