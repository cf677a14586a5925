import math

import numpy as np
import pytest

from loadgen.analysis.breakeven import find_break_even
from loadgen.analysis.ratios import mean_and_sd
from loadgen.analysis.refine import Proposal, propose
from loadgen.analysis.signs import LevelStat


def proposal(ratios: dict[int, float], sd: float = 0.01, highest: int = 256) -> Proposal:
    stats = [LevelStat(level, math.log(ratio), 3, sd) for level, ratio in ratios.items()]
    return propose(find_break_even(stats), stats, highest=highest)


def test_a_wide_bracket_gets_a_level_in_its_middle() -> None:
    assert proposal({1: 1.7, 8: 1.1, 16: 0.9, 32: 0.8}) == Proposal(levels=(11,))


def test_a_narrow_bracket_is_left_alone() -> None:
    assert proposal({1: 1.7, 11: 1.05, 12: 0.93, 32: 0.8}) == Proposal()


def test_an_unsure_level_in_the_bracket_gets_repeats_first() -> None:
    found = proposal({1: 1.7, 8: 1.2, 12: 1.015, 16: 0.8})
    assert found.levels == ()
    assert list(found.repeats) == [12]


def test_a_draw_in_the_bracket_is_closed_in_from_both_sides() -> None:
    assert proposal({1: 1.7, 8: 1.2, 16: 1.0, 32: 0.7}) == Proposal(levels=(11, 23))


@pytest.mark.parametrize(("highest", "levels"), [(256, (64,)), (48, (48,)), (32, ())])
def test_levels_double_up_to_the_servers_limit(highest: int, levels: tuple[int, ...]) -> None:
    assert proposal({1: 1.7, 32: 1.3}, highest=highest) == Proposal(levels=levels)


def test_never_pays_asks_for_nothing() -> None:
    assert proposal({1: 0.9, 32: 0.5}) == Proposal()


def test_planned_looks_keep_the_false_findings_at_their_rate() -> None:
    generator = np.random.default_rng(9)
    truth = {1: 1.0, 2: 1.0, 4: 1.0, 8: 0.8, 16: 0.6}
    false, runs, looks = 0, 300, 3
    for _ in range(runs):
        draws = {level: list(generator.normal(math.log(ratio), 0.03, 3)) for level, ratio in truth.items()}
        for _ in range(looks):
            stats = [LevelStat(level, *_summary(values)) for level, values in draws.items()]
            if find_break_even(stats, looks=looks).status == "found":
                false += 1
                break
            for level in (1, 2, 4):
                draws[level] += list(generator.normal(0.0, 0.03, 3))
    # Nominal 5 %, standard error 1.3 %.
    assert false / runs <= 0.08


def _summary(values: list[float]) -> tuple[float, int, float | None]:
    mean, sd = mean_and_sd(values)
    return mean, len(values), sd
