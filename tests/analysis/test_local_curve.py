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


def stepped(generator: np.random.Generator) -> tuple[dict[int, float], list[float]]:
    """A straight line with each whole concurrency's own departure, as padded batches have it; and where it turns."""
    curve = {level: straight(level) + generator.normal(0, 0.04 * min(4 / level, 0.5)) for level in range(4, 33)}
    turns = [
        level * ((level + 1) / level) ** (curve[level] / (curve[level] - curve[level + 1]))
        for level in range(4, 32)
        if (curve[level] > 0) != (curve[level + 1] > 0)
    ]
    return curve, turns


def test_the_interval_covers_at_its_nominal_rate() -> None:
    generator = np.random.default_rng(4)
    held = runs = 0
    for _ in range(400):
        curve, turns = stepped(generator)
        stats = []
        for level, n in {4: 1, 8: 4, 9: 4, 10: 4, 12: 4, 16: 3, 32: 1}.items():
            mean, own = mean_and_sd([curve[level] + float(x) for x in generator.normal(0, 0.02, n)])
            stats.append(LevelStat(level, mean, n, own))
        found = local_curve(stats, (8, 16), TURN)
        assert found is not None
        held, runs = held + any(found.ci95[0] <= turn <= found.ci95[1] for turn in turns), runs + 1
    # Nominal 95 %, standard error 1.1 %; what the curve leaves open between levels adds to the interval.
    assert 0.93 <= held / runs <= 0.99


def test_the_nearer_the_levels_the_narrower_the_interval() -> None:
    def width(levels: tuple[int, ...]) -> float:
        found = local_curve([LevelStat(level, straight(level), 4, 0.01) for level in levels], (8, 16), TURN)
        assert found is not None
        return found.ci95[1] - found.ci95[0]

    assert width((8, 10, 11, 16)) < 0.7 * width((8, 12, 14, 16))


def test_sessions_widen_the_interval_by_what_their_starts_differ() -> None:
    def width(luck: float) -> float:
        means = {level: {s: straight(level) + luck * (s - 1.5) for s in range(4)} for level in (8, 10, 12, 16)}
        stats = []
        for level, values in means.items():
            mean, sd = mean_and_sd(list(values.values()))
            stats.append(LevelStat(level, mean, 4, math.hypot(sd or 0.0, 0.01)))
        found = local_curve(stats, (4, 32), TURN, common_shifts(means.values()))
        assert found is not None
        return math.log2(found.ci95[1] / found.ci95[0])

    # Session shifts of sd 0.026: ± 3.2 standard errors of 0.013 at a slope of 0.25 an octave.
    assert width(0.02) > 1.3 * width(0.0001)
    assert width(0.02) > 2 * 3.18 * 0.0129 / 0.25


def test_the_verdict_names_the_interval_as_what_it_is() -> None:
    stats = [LevelStat(level, straight(level), 3, 0.01) for level in (1, 8, 10, 12, 16)]
    (crossing,) = find_break_even(stats).crossings
    assert (crossing.kind, crossing.concurrency) == ("curve", 10.0)
    assert "95 % CI" in find_break_even(stats).sentence


def test_common_shifts_leave_out_levels_that_a_session_lacks() -> None:
    assert common_shifts([{0: 0.1, 1: 0.3}, {0: 0.9}]) == pytest.approx((-0.1, 0.1))
    assert common_shifts([{0: 0.9}, {1: 0.1}]) == ()
