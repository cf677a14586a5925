"""Merging histograms, and quantiles from buckets."""

import math

import pytest

from loadgen.metrics.histogram import merge, quantile, sort_buckets
from loadgen.metrics.model import HistogramDelta

INF = math.inf


def test_c78_buckets_are_sorted_by_number() -> None:
    assert sort_buckets({10.0: 4, INF: 5, 2.5: 1}) == ((2.5, 1), (10.0, 4), (INF, 5))


@pytest.mark.parametrize(("q", "value"), [(0.5, 0.60), (0.9, 1.833), (0.95, 2.25), (0.99, 3.75)])
def test_c79_quantiles_interpolate_inside_a_bucket(q: float, value: float) -> None:
    buckets = ((0.25, 10), (0.5, 40), (0.75, 65), (1.0, 80), (2.5, 98), (5.0, 100), (INF, 100))
    found = quantile(buckets, q)
    assert found is not None
    assert found.value == pytest.approx(value, abs=0.001)
    assert found.lower < value <= found.upper
    assert found.text(unit="s").startswith("~")


def test_c80_above_the_last_finite_bucket_there_is_only_a_bound() -> None:
    found = quantile(((1, 50), (2, 90), (INF, 100)), 0.99)
    assert found is not None
    assert found.value is None
    assert found.text(unit="s") == "> 2 s"


def test_c81_all_in_the_first_bucket_gives_a_bound_and_the_mean() -> None:
    histogram = HistogramDelta(200, 0.62, ((0.01, 200), (INF, 200)))
    for q in (0.5, 0.99):
        found = quantile(histogram.buckets, q)
        assert found is not None
        assert found.value is None
        assert found.text(1000, "ms") == "≤ 10 ms"
    assert histogram.mean == pytest.approx(0.0031)


def test_c82_no_observations_give_nothing() -> None:
    assert quantile(((1, 0), (INF, 0)), 0.5) is None
    assert quantile((), 0.5) is None
    assert HistogramDelta(0, 0.0).mean is None


def test_c83_merge_keeps_common_bounds_and_names_the_others() -> None:
    merged, dropped = merge([{0.1: 3, 0.5: 8, INF: 10}, {0.2: 1, 0.5: 4, INF: 5}])
    assert merged == ((0.5, 12), (INF, 15))
    assert dropped == (0.1, 0.2)
    assert merge([]) == ((), ())


def test_a_quantile_at_an_empty_bucket_goes_to_the_next_full_one() -> None:
    found = quantile(((1, 10), (2, 10), (3, 20), (INF, 20)), 0.75)
    assert found is not None
    assert (found.lower, found.value, found.upper) == (2, 2.5, 3)
