"""The queueing station against closed forms."""

import math

import numpy as np
import pytest

from loadgen.analysis.capacity_queue import Curve, latencies_of, prompt_wait, under_rate, with_users

SINGLE = Curve(((1, 10.0), (2, 10.0), (4, 10.0), (64, 10.0)))
"""A server that never gets faster: M/M/1."""
ENDLESS = Curve(tuple((level, 2.0 * level) for level in (1, 2, 4, 8, 16, 32, 64)))
"""A server that slows nobody down: M/M/∞ with a mean of half a second."""


def test_a_flat_curve_is_mm1() -> None:
    company = under_rate(SINGLE, 6.0)
    assert company is not None
    assert company.in_flight == pytest.approx(0.6 / 0.4)
    # PASTA: an arrival meets n others with (1 − ρ) ρ^n
    assert company.met[:3] == pytest.approx([0.4, 0.24, 0.144])
    assert company.beyond == pytest.approx(0.6**64)


def test_a_proportional_curve_is_mm_infinity() -> None:
    company = under_rate(ENDLESS, 8.0)
    assert company is not None
    assert company.in_flight == pytest.approx(4.0)
    assert company.met[0] == pytest.approx(math.exp(-4.0))


def test_more_than_the_top_speed_has_no_answer() -> None:
    assert under_rate(SINGLE, 10.0) is None


def test_users_follow_the_response_time_law_and_mva() -> None:
    # exact MVA for one queueing station with demand 0.1 s and think time 2 s
    queue = 0.0
    rate = 0.0
    for users in range(1, 31):
        response = 0.1 * (1 + queue)
        rate = users / (response + 2.0)
        queue = rate * response
    company = with_users(SINGLE, 30, 2.0)
    assert company.rate_per_s == pytest.approx(rate)
    assert company.in_flight == pytest.approx(queue)
    assert company.in_flight == pytest.approx(30 - company.rate_per_s * 2.0)


def test_users_who_never_think_are_requests_in_flight() -> None:
    company = with_users(SINGLE, 4, 0.0)
    assert company.in_flight == 4
    assert company.met.tolist() == [0, 0, 0, 1] + [0] * 60
    assert with_users(SINGLE, 65, 0.0).beyond == 1.0


def test_rates_between_levels_are_log_log() -> None:
    curve = Curve(((2, 10.0), (8, 40.0)))
    assert curve.rates()[[0, 1, 3, 7]] == pytest.approx([5.0, 10.0, 20.0, 40.0])


def test_latencies_mix_by_company_and_end_where_levels_end() -> None:
    latencies = latencies_of([(1, [0.1] * 50), (4, [0.4] * 50)])
    assert latencies is not None
    assert latencies.table[:, 0] == pytest.approx([0.1, 0.2, 0.3, 0.4])
    company = with_users(Curve(((1, 1.0), (4, 1.0))), 3, 1.0)
    mixture = latencies.mixed(company)
    assert mixture.quantile(company.met[0] * 0.9) == pytest.approx(0.1)
    assert mixture.quantile(0.999) == pytest.approx(0.3)
    lost = latencies.mixed(with_users(Curve(((1, 1.0), (4, 1.0))), 9, 0.0))
    assert lost.quantile(0.01) == math.inf


def test_a_level_where_requests_fail_is_infinitely_slow() -> None:
    latencies = latencies_of([(1, [0.1] * 50), (2, [math.inf] * 50)])
    assert latencies is not None
    assert np.isinf(latencies.table[1]).all()
    assert np.isfinite(latencies.table[0]).all()


def test_the_wait_for_prompts_decays_as_in_md1() -> None:
    wait = prompt_wait(5.0, 0.1)
    assert wait is not None
    assert wait.share == pytest.approx(0.5)
    # the root of λ (e^(θD) − 1) = θ at ρ = 0.5: θ D = 1.2564
    assert wait.decay_per_s * 0.1 == pytest.approx(1.2564, abs=1e-3)
    # simulated by Lindley's recursion
    rng = np.random.default_rng(2)
    at, waits = 0.0, []
    for gap in rng.exponential(0.2, size=100_000):
        waits.append(at)
        at = max(0.0, at + 0.1 - gap)
    for late in (0.15, 0.3):
        expected = wait.tail * math.exp(-wait.decay_per_s * late)
        assert np.mean(np.array(waits) > late) == pytest.approx(expected, rel=0.15)
    assert prompt_wait(0.0, 0.1) is None


def test_a_wait_moves_the_tail_and_hardly_the_middle() -> None:
    latencies = latencies_of([(1, [0.1] * 50), (2, [0.1] * 50)])
    assert latencies is not None
    mixture = latencies.mixed(with_users(Curve(((1, 9.0), (2, 9.0))), 1, 1.0))
    wait = prompt_wait(1.0, 0.1)
    assert mixture.quantile(0.5, wait) == pytest.approx(0.1, abs=1e-6)
    assert mixture.quantile(0.99, wait) > 0.12
