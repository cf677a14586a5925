import math
from typing import Any

import numpy as np
import pytest

from loadgen.analysis.costmodel import (
    CostModel,
    StepPoint,
    between_levels,
    fit_cost,
    predict_speedups,
    predicted_break_even,
    step_points,
)
from loadgen.analysis.findings import analyse

TRUTH = CostModel(5e-3, ((128.0, 4e-5),), 2e-5, 4e-4, 1e-5, 0, 0.0)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)


def points_of(step_time: Any, noise: float = 0.0) -> list[StepPoint]:
    generator = np.random.default_rng(3)
    found = []
    for drafted, speculates in ((0.0, False), (3.0, True)):
        for batch in BATCHES:
            factor = math.exp(float(generator.normal(0.0, noise))) if noise else 1.0
            time_s = step_time(float(batch), drafted, speculates=speculates) * factor
            found.append(StepPoint(float(batch), drafted, time_s, speculates))
    return found


def test_the_fit_finds_the_model_that_made_the_times() -> None:
    model = fit_cost(points_of(TRUTH.step_time_s))
    assert model is not None
    assert model.rms_error < 1e-6
    for batch in BATCHES:
        for drafted, speculates in ((0.0, False), (3.0, True)):
            expected = TRUTH.step_time_s(batch, drafted, speculates=speculates)
            assert model.step_time_s(batch, drafted, speculates=speculates) == pytest.approx(expected)


def test_noise_of_two_per_cent_leaves_the_speed_ups_within_five() -> None:
    model = fit_cost(points_of(TRUTH.step_time_s, noise=0.02))
    assert model is not None
    for batch in (1, 8, 48, 96):
        assert model.speedup(batch, 3.0, 2.5) == pytest.approx(TRUTH.speedup(batch, 3.0, 2.5), rel=0.05)


def smooth(batch: float, drafted: float, *, speculates: bool) -> float:
    """Another functional form: a smooth maximum of reading and computing, and a draft that grows with √batch."""
    verified = batch * (1 + drafted)
    time_s = 1e-3 + math.hypot(4e-3, 3e-5 * verified) + 2e-5 * batch
    return time_s + (3e-4 + 2e-5 * math.sqrt(batch) if speculates else 0.0)


def test_a_generator_of_another_form_is_followed_within_five_per_cent_on_speed_ups() -> None:
    model = fit_cost(points_of(smooth))
    assert model is not None
    for batch in BATCHES:
        true = 2.5 * smooth(batch, 0.0, speculates=False) / smooth(batch, 3.0, speculates=True)
        assert model.speedup(batch, 3.0, 2.5) == pytest.approx(true, rel=0.05)


def test_too_few_points_give_no_model() -> None:
    assert fit_cost(points_of(TRUTH.step_time_s)[:5]) is None
    assert fit_cost([StepPoint(8.0, 0.0, 0.01, False)] * 10) is None


def test_a_cost_probe_predicts_the_break_even_of_a_workload(run_of: Any, manifest: Any) -> None:
    probe = analyse(manifest(), run_of({1: 1.7, 2: 1.6, 4: 1.35, 8: 1.1, 16: 0.95, 32: 0.8})).conditions[0].profiles[0]
    # The probe's cells give 2 tokens a step; a workload with 1.6 keeps 80 % of its speed-up.
    speedups = predict_speedups(probe.levels, dict.fromkeys((1, 2, 4, 8, 16, 64), 1.6))
    assert set(speedups) == {1, 2, 4, 8, 16}
    assert speedups[8] == pytest.approx(0.88, rel=1e-3)
    assert predicted_break_even(between_levels(speedups), 32) == 5
    assert predicted_break_even(between_levels({1: 0.9, 8: 0.8}), 32) == 0
    assert predicted_break_even(between_levels({1: 1.9, 8: 1.8}), 32) == 32


def test_step_points_come_from_explained_levels(run_of: Any, manifest: Any) -> None:
    levels = analyse(manifest(), run_of({8: 1.2, 16: 1.0})).conditions[0].profiles[0].levels
    points = step_points(levels)
    assert [point.speculates for point in points] == [True, False, True, False]
    assert [point.batch for point in points] == pytest.approx([8.0, 8.0, 16.0, 16.0])
    # 4 draft tokens in 80 % of the steps.
    assert points[0].verified == pytest.approx(8 * 4.2)
