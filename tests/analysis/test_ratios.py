import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from loadgen.analysis.pairs import Pair, pair_cells
from loadgen.analysis.ratios import E2E, THROUGHPUT, TPOT, TTFT, LogSample, estimate, estimate_ratio, quotient, units


def samples(*values: float, session: int = 0) -> list[LogSample]:
    return [LogSample(session, math.log(value)) for value in values]


def test_the_interval_is_a_t_interval_on_the_logarithms() -> None:
    found = estimate(samples(1.1, 1.2, 1.3))
    logs = np.log([1.1, 1.2, 1.3])
    low, high = stats.t.interval(0.95, 2, loc=logs.mean(), scale=stats.sem(logs))
    assert found is not None
    assert found.ci95 is not None
    assert (found.value, *found.ci95) == pytest.approx((math.exp(logs.mean()), math.exp(low), math.exp(high)))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_no_interval_below_three(n: int) -> None:
    found = estimate(samples(*[1.2] * n))
    assert (found is None) if n == 0 else (found is not None and found.ci95 is None and found.n == n)


def test_session_means_are_the_units_from_three_sessions_on() -> None:
    two = samples(1.0, 1.1) + samples(1.2, 1.3, session=1)
    assert len(units(two)) == 4
    three = two + samples(1.4, 1.5, session=2)
    assert len(units(three)) == 3
    assert units(three)[0] == pytest.approx((math.log(1.0) + math.log(1.1)) / 2)


def test_each_measure_reads_its_own_direction(cell: Any) -> None:
    base, own = cell("baseline", tokens_per_s=1000.0), cell("ngram", tokens_per_s=2000.0)
    own = replace(own, ttft_s=replace(own.ttft_s, p50=0.1))
    pair = Pair(base, own)
    assert THROUGHPUT.ratio(pair) == 2.0
    assert TPOT.ratio(pair) == 2.0
    assert TTFT.ratio(pair) == 2.0
    e2e = E2E.ratio(pair)
    assert e2e is not None
    assert 1.0 < e2e < 2.0


@pytest.mark.parametrize(("part", "whole"), [(None, 1.0), (1.0, None), (0.0, 1.0), (1.0, 0.0), (math.inf, 1.0)])
def test_a_ratio_that_is_none_is_none(part: float | None, whole: float | None) -> None:
    assert quotient(part, whole) is None


def test_a_cell_measured_again_replaces_the_first(cell: Any) -> None:
    cells = [cell("baseline"), cell(order=1, tokens_per_s=900.0), cell(order=2, tokens_per_s=1100.0)]
    (pairing,) = pair_cells(cells, "baseline")
    assert [pair.profile.output_tokens_per_s for pair in pairing.pairs] == [1100.0]


def test_the_level_interval_covers_at_its_nominal_rate() -> None:
    generator = np.random.default_rng(7)
    truth, runs, hits = math.log(1.1), 4000, 0
    for draws in generator.normal(truth, 0.05, size=(runs, 3)):
        found = estimate([LogSample(0, float(value)) for value in draws])
        assert found is not None
        assert found.ci95 is not None
        hits += found.ci95[0] <= 1.1 <= found.ci95[1]
    # Standard error of the coverage: 0.34 %.
    assert 0.94 <= hits / runs <= 0.96


def test_a_pair_that_lacks_the_measure_lowers_n(cell: Any) -> None:
    pairs = [Pair(cell("baseline"), cell()), Pair(cell("baseline"), cell(tokens_per_s=0.001))]
    dead = [Pair(pairs[0].baseline, replace(pairs[0].profile, output_tokens_per_s=0.0))]
    found = estimate_ratio(pairs[:1] + dead, THROUGHPUT)
    assert found is not None
    assert found.n == 1
