"""Order-statistic intervals: known ranks, coverage, and what small samples may not say."""

import math

import numpy as np
import pytest

from loadgen.analysis.capacity_model import RequestTimes, Slo, Verdict
from loadgen.analysis.capacity_quantile import (
    estimate_quantile,
    is_good,
    judge_slo,
    needed,
    overall,
    quantile_of,
    ranks,
)


def test_the_ranks_of_the_median_are_the_textbook_ones() -> None:
    # n = 20: the 6th and 15th values bound the median with 95.9 %
    assert ranks(20, 0.5) == (6, 15)


def test_p99_needs_368_requests() -> None:
    assert needed(0.99) == 368
    assert ranks(367, 0.99)[1] is None
    assert ranks(368, 0.99)[1] == 368


@pytest.mark.parametrize(("n", "quantile"), [(60, 0.5), (400, 0.9), (600, 0.99)])
def test_intervals_hold_the_quantile_in_95_of_100_samples(n: int, quantile: float) -> None:
    rng = np.random.default_rng(4)
    true = -math.log(1 - quantile)
    hits = 0
    for _ in range(1000):
        found = estimate_quantile(sorted(rng.exponential(size=n).tolist()), quantile)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= true <= found.high
    assert hits >= 940


def test_a_small_sample_is_unresolved_unless_it_surely_misses() -> None:
    fast = judge_slo(Slo("ttft", 0.99, 0.5), [0.1] * 100, ())
    slow = judge_slo(Slo("ttft", 0.99, 0.5), [0.9] * 100, ())
    assert fast is not None
    assert fast.verdict is Verdict.UNRESOLVED
    assert slow is not None
    assert slow.verdict is Verdict.MISSED


def test_failed_requests_push_a_quantile_to_infinity_and_miss() -> None:
    values = sorted([0.1] * 390 + [math.inf] * 20)
    assert quantile_of(values, 0.99) == math.inf
    found = judge_slo(Slo("ttft", 0.99, 0.5), values, ())
    assert found is not None
    assert found.verdict is Verdict.MISSED


def test_one_missing_metric_leaves_the_level_unresolved() -> None:
    ended = [RequestTimes(0.1, None, 0.1)] * 400
    slos = (Slo("ttft", 0.99, 0.5), Slo("tpot", 0.99, 0.03))
    findings = [f for slo in slos if (f := judge_slo(slo, [0.1] * 400, ended)) is not None]
    assert len(findings) == 1
    assert overall(findings, len(slos)) is Verdict.UNRESOLVED


def test_goodput_wants_every_limit_at_once() -> None:
    slos = (Slo("ttft", 0.99, 0.5), Slo("tpot", 0.99, 0.03))
    assert is_good(RequestTimes(0.4, 0.02, 2.0), slos)
    assert not is_good(RequestTimes(0.6, 0.02, 2.0), slos)
    assert not is_good(RequestTimes(0.4, 0.04, 2.0), slos)
    assert is_good(RequestTimes(0.4, None, 0.4), slos)
    assert not is_good(RequestTimes(math.inf, math.inf, math.inf), slos)
