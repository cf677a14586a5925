import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from loadgen.analysis.costmodel import (
    CostModel,
    between_levels,
    fit_cost,
    predicted_break_even,
)
from loadgen.analysis.findings import analyse
from loadgen.analysis.probe import Probe, carried
from loadgen.analysis.stepcost import StepCost, StepPoint, Steps
from loadgen.analysis.steps import StepGroup

TRUTH = StepCost(1e-3, 4e-3, 4e-5, 1.0, 2e-5, 4e-4, 1e-5, 2e-2)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
Generator = Callable[[float, float, bool], float]


def own_form(batch: float, verified: float, speculates: bool) -> float:
    """The fit's own form, whose coefficients are known."""
    point = StepPoint(batch, verified / batch - 1, 1.0, speculates)
    return float(Steps([point]).mean_s(TRUTH)[0])


def smooth(batch: float, verified: float, speculates: bool) -> float:
    """Another functional form: a hyperbola of reading and computing, and a draft that grows with √batch."""
    time_s = 1e-3 + math.hypot(4e-3, 3e-5 * verified) + 2e-5 * batch
    return time_s + (3e-4 + 2e-5 * math.sqrt(batch) if speculates else 0.0)


def hinge(batch: float, verified: float, speculates: bool) -> float:
    """A third: a floor and a line, with a sharp bend."""
    return 5e-3 + 4e-5 * max(0.0, verified - 128) + 2e-5 * batch + (4e-4 + 1e-5 * batch if speculates else 0.0)


def points_of(form: Generator, noise: float = 0.0, seed: int = 3) -> list[StepPoint]:
    generator = np.random.default_rng(seed)
    found = []
    for batch in BATCHES:
        for drafted, speculates in ((0.0, False), (3.0, True)):
            factor = math.exp(float(generator.normal(0.0, noise))) if noise else 1.0
            time_s = form(float(batch), batch * (1 + drafted), speculates) * factor
            found.append(StepPoint(float(batch), drafted, time_s, speculates))
    return found


def error_at(model: CostModel | None, form: Generator, batch: int) -> float:
    """Foretold over true speed-up at equal tokens per step, less 1."""
    assert model is not None
    plain, own = StepPoint(batch, 0.0, 1.0, False), StepPoint(batch, 3.0, 1.0, True)
    true = form(batch, batch * 4.0, True) / form(batch, batch, False)
    return true / model.break_even_length(plain, own) - 1


def test_the_fit_finds_the_steps_of_its_own_form() -> None:
    model = fit_cost(points_of(own_form))
    assert model is not None
    assert model.rms_error < 0.01
    assert model.cost.knee == pytest.approx(TRUTH.knee, rel=0.3)


@pytest.mark.parametrize("form", [own_form, smooth, hinge])
def test_levels_that_were_not_measured_are_foretold_within_five_per_cent(form: Generator) -> None:
    exact = fit_cost(points_of(form))
    assert max(abs(error_at(exact, form, batch)) for batch in (3, 6, 12, 24, 48, 96)) < 0.03
    noisy = fit_cost(points_of(form, noise=0.02))
    assert max(abs(error_at(noisy, form, batch)) for batch in (3, 6, 12, 24, 48, 96)) < 0.05


def test_the_intervals_of_fits_hold_the_true_cost_ratio() -> None:
    """Of 40 noisy fits, the 95 % range of the draws holds L* at 24 in about 38."""
    plain, own = StepPoint(24, 0.0, 1.0, False), StepPoint(24, 3.0, 1.0, True)
    true = own_form(24, 96, True) / own_form(24, 24, False)
    held = 0
    for seed in range(40):
        model = fit_cost(points_of(own_form, noise=0.03, seed=seed))
        assert model is not None
        pairs = Steps([plain, own])
        ratios = sorted(float(times[1] / times[0]) for times in map(pairs.mean_s, model.draws(200)))
        held += ratios[5] <= true <= ratios[194]
    assert held >= 33


def test_a_floor_without_graphs_is_found_from_steps_with_prompts() -> None:
    # 40 ms to launch what computes for 18 to 28 ms.
    truth = replace(TRUTH, without_graph_s=4e-2)
    found = []
    for batch in BATCHES[:7]:
        for drafted, speculates in ((0.0, False), (3.0, True)):
            carrying = min(0.5, 0.01 * batch)
            kinds = (StepGroup(1 - carrying, 0.0, 0.0), StepGroup(carrying, 1.0, 460.0))
            point = StepPoint(batch, drafted, 1.0, speculates, kinds)
            found.append(StepPoint(batch, drafted, float(Steps([point]).mean_s(truth)[0]), speculates, kinds))
    model = fit_cost(found)
    assert model is not None
    assert model.rms_error < 0.01
    assert model.cost.without_graph_s == pytest.approx(4e-2, rel=0.05)


def test_too_few_points_give_no_model() -> None:
    assert fit_cost(points_of(smooth)[:5]) is None
    assert fit_cost([StepPoint(8.0, 0.0, 0.01, False)] * 10) is None


def test_a_cost_probe_predicts_the_break_even_of_a_workload(run_of: Any, manifest: Any) -> None:
    found = analyse(manifest(), run_of({1: 1.7, 2: 1.6, 4: 1.35, 8: 1.1, 16: 0.95, 32: 0.8})).conditions[0].profiles[0]
    probe = Probe(found, (), None)
    # The probe's cells give 2 tokens a step; a workload with 1.6 keeps 80 % of its speed-up.
    speedups = probe.speedups(dict.fromkeys((1, 2, 4, 8, 16, 64), 1.6))
    assert set(speedups) == {1, 2, 4, 8, 16}
    assert speedups[8] == pytest.approx(0.88, rel=1e-3)
    assert predicted_break_even(between_levels(speedups), 32) == 5
    assert probe.turn(1.6) == 5
    assert probe.length(8) == pytest.approx(2 / 1.1, rel=1e-3)
    assert predicted_break_even(between_levels({1: 0.9, 8: 0.8}), 32) == 0
    assert predicted_break_even(between_levels({1: 1.9, 8: 1.8}), 32) == 32


def test_more_accepted_tokens_carry_more_prompts() -> None:
    once = (StepGroup(0.8, 0.0, 0.0), StepGroup(0.2, 1.0, 300.0))
    only, carrying = carried(once, 2.0)
    assert only.share == pytest.approx(0.64)
    assert carrying.share * carrying.prompts == pytest.approx(0.4)
    assert carrying.share * carrying.prompt_tokens == pytest.approx(120.0)
    assert carried(once, 1.0)[1].prompts == pytest.approx(1.0)
    assert carried((StepGroup(1.0, 0.0, 0.0),), 3.0) == (StepGroup(1.0, 0.0, 0.0),)
