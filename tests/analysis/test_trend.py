import math
from collections.abc import Callable

import pytest

from loadgen.analysis.findings import analyse
from loadgen.analysis.pairs import pair_cells
from loadgen.analysis.trend import Trend, trend_note, trend_over_repeats
from loadgen.store.model import CellResult, Manifest

RATIOS = {1: 1.6, 8: 1.2, 32: 0.9}


def found(cells: list[CellResult]) -> Trend | None:
    (pairing,) = pair_cells(cells, "baseline")
    return trend_over_repeats({level: pairing.at(level) for level in pairing.levels()})


def test_a_cache_that_warms_up_is_a_trend(run_of: Callable[..., list[CellResult]]) -> None:
    trend = found(run_of(RATIOS, noise=(1.0, 1.1, 1.21), profile="suffix"))
    assert trend is not None
    assert math.expm1(trend.per_repeat) == pytest.approx(0.1)
    assert trend.p < 0.001
    assert trend.warm / trend.cold == pytest.approx(1.21)
    assert "cold (first repeat)" in trend_note(trend)


def test_noise_is_none(run_of: Callable[..., list[CellResult]]) -> None:
    trend = found(run_of(RATIOS, noise=(1.0, 1.02, 0.99, 1.005), profile="suffix"))
    assert trend is not None
    assert trend.p > 0.05
    assert trend_note(trend).startswith("no trend")


def test_single_repeats_say_nothing(run_of: Callable[..., list[CellResult]]) -> None:
    assert found(run_of(RATIOS, noise=(1.0,), profile="suffix")) is None


def test_only_methods_that_learn_are_noted(
    run_of: Callable[..., list[CellResult]], manifest: Callable[..., Manifest]
) -> None:
    for profile, noted in (("suffix", True), ("ngram", False)):
        cells = run_of(RATIOS, noise=(1.0, 1.1, 1.21), profile=profile)
        notes = analyse(manifest(("baseline", profile)), cells).notes
        assert any("from repeat to repeat" in note for note in notes) is noted
