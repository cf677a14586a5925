import math

import numpy as np
import pytest

from loadgen.analysis.breakeven import find_break_even
from loadgen.analysis.local_curve import local_curve
from loadgen.analysis.ratios import mean_and_sd
from loadgen.analysis.shifts import common_shifts
from loadgen.analysis.signs import LevelStat

TURN = 10.4


def straight(level: int) -> float:
    return -0.25 * math.log2(level / TURN)


def drawn(generator: np.random.Generator, levels: dict[int, int], sd: float, shift: float = 0.0) -> list[LevelStat]:
    found = []
    for level, n in levels.items():
        mean, own = mean_and_sd([straight(level) + shift + float(x) for x in generator.normal(0, sd, n)])
        found.append(LevelStat(level, mean, n, own))
    return found


def test_a_straight_line_gives_its_root() -> None:
    stats = [LevelStat(level, straight(level), 3, 0.01) for level in (8, 10, 12, 16)]
    curve = local_curve(stats, (8, 16), 10.0)
    assert curve is not None
    assert curve.crossing == pytest.approx(TURN, rel=0.005)
    assert curve.ci95[0] < TURN < curve.ci95[1]


def test_too_few_levels_near_the_crossing_draw_no_curve() -> None:
    stats = [LevelStat(level, straight(level), 3, 0.01) for level in (4, 8, 16, 32)]
    assert local_curve(stats, (8, 16), 10.0) is None


def test_single_repeats_draw_no_curve() -> None:
    stats = [LevelStat(level, straight(level), 1, None) for level in (8, 10, 12, 16)]
    assert local_curve(stats, (8, 16), 10.0) is None


def test_a_cliff_between_levels_stays_open_between_them() -> None:
    stats = [LevelStat(level, 0.09 if level < 13 else -0.46, 3, 0.01) for level in (8, 11, 14, 16)]
    curve = local_curve(stats, (11, 14), 12.0)
    assert curve is not None
    low, high = curve.ci95
    assert high - low > 1.0


def test_the_interval_covers_at_its_nominal_rate() -> None:
    generator = np.random.default_rng(4)
    held = runs = 0
    for _ in range(600):
        curve = local_curve(drawn(generator, {4: 1, 8: 4, 9: 4, 12: 4, 16: 3, 32: 1}, 0.02), (8, 16), TURN)
        assert curve is not None
        held, runs = held + (curve.ci95[0] <= TURN <= curve.ci95[1]), runs + 1
    # Nominal 95 %, standard error 0.9 %; what the curve leaves open between levels adds to the interval.
    assert 0.93 <= held / runs <= 0.99


def test_sessions_widen_the_interval_by_what_their_starts_differ() -> None:
    generator = np.random.default_rng(6)
    held = 0
    for _ in range(300):
        luck = generator.normal(0, 0.02, 4)
        levels: dict[int, dict[int, float]] = {
            level: {s: straight(level) + float(luck[s] + generator.normal(0, 0.01)) for s in range(4)}
            for level in (8, 9, 12, 16)
        }
        stats = []
        for level, values in levels.items():
            mean, sd = mean_and_sd(list(values.values()))
            stats.append(LevelStat(level, mean, 4, sd))
        curve = local_curve(stats, (4, 32), TURN, common_shifts(levels.values()))
        held += curve is not None and curve.ci95[0] <= TURN <= curve.ci95[1]
    assert 0.92 <= held / 300 <= 0.99


def test_the_verdict_names_the_interval_as_what_it_is() -> None:
    stats = [LevelStat(level, straight(level), 3, 0.01) for level in (1, 8, 10, 12, 16)]
    (crossing,) = find_break_even(stats).crossings
    assert (crossing.kind, crossing.concurrency) == ("curve", 10.0)
    assert "95 % CI" in find_break_even(stats).sentence


def test_common_shifts_leave_out_levels_that_a_session_lacks() -> None:
    assert common_shifts([{0: 0.1, 1: 0.3}, {0: 0.9}]) == pytest.approx((-0.1, 0.1))
    assert common_shifts([{0: 0.9}, {1: 0.1}]) == ()
