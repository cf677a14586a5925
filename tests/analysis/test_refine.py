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
    assert proposal({1: 1.7, 8: 1.1, 16: 0.9, 32: 0.8}) == Proposal({11: 3})


def test_a_single_whole_number_is_left_alone() -> None:
    assert not proposal({1: 1.7, 11: 1.15, 12: 0.83, 32: 0.8})


def test_a_narrow_curve_is_left_alone() -> None:
    assert not proposal({8: 1.2, 10: 1.05, 11: 1.0, 12: 0.95, 16: 0.8}, sd=0.003)


def test_a_wide_curve_gets_repeats_on_both_sides_of_its_crossing() -> None:
    found = proposal({1: 1.7, 8: 1.2, 11: 1.015, 16: 0.8}, sd=0.05)
    low, high = found.repeats
    assert low <= 11 < high
    assert high / low < 1.6


def test_a_first_pass_of_single_repeats_asks_for_three_beside_the_change_of_sign() -> None:
    stats = [LevelStat(level, math.log(ratio), 1, None) for level, ratio in {1: 1.7, 8: 1.2, 16: 0.8}.items()]
    found = propose(find_break_even(stats), stats, highest=256)
    assert found.repeats.items() >= {8: 3, 16: 3}.items()
    assert 32 not in found.repeats


@pytest.mark.parametrize(("highest", "repeats"), [(256, {64: 1}), (48, {48: 1}), (32, {})])
def test_levels_double_up_to_the_servers_limit(highest: int, repeats: dict[int, int]) -> None:
    assert proposal({1: 1.7, 32: 1.3}, highest=highest) == Proposal(repeats)


def test_never_pays_asks_for_nothing() -> None:
    assert not proposal({1: 0.9, 32: 0.5})


def test_a_cliff_is_closed_in_to_one_whole_number() -> None:
    """1.10 up to 90 and 0.63 from there on, as an H200 showed between 64 and 128."""
    levels = {1: 1.6, 64: 1.1, 128: 0.63}
    for _ in range(12):
        found = proposal(levels)
        if not found:
            break
        levels |= {level: 1.1 if level <= 90 else 0.63 for level in found.repeats}
    verdict = find_break_even([LevelStat(level, math.log(ratio), 3, 0.01) for level, ratio in sorted(levels.items())])
    (crossing,) = verdict.crossings
    assert crossing.ci95[0] <= 90 <= crossing.ci95[1]
    assert crossing.ci95[1] / crossing.ci95[0] <= 1.2


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
