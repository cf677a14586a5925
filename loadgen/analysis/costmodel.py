"""The cost of an engine step, fitted to measured ones; and break-evens that were not run (docs/method.md, part 6)."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from loadgen.analysis.stepcost import StepCost, StepPoint, Steps

MIN_POINTS = 6
NOISE = 0.03
"""Relative error of a step time, against which what is believed beforehand is weighed."""
_BELIEFS = {
    "launch": (0.3, 1.5),
    "weights": (0.6, 1.0),
    "knee": (100.0, 1.5),
    "exponent": (1.0, 0.1),
    "per_request": (0.003, 2.0),
    "drafting": (0.1, 1.5),
    "drafting_per_request": (0.002, 2.0),
    "without_graph": (2.0, 1.0),
}
"""Middle and standard deviation of the ln: times as shares of the shortest step, the knee in tokens. Wide but for the
exponent: they hold what step times do not tell, such as launch apart from weights."""
_KNEES = (10.0, 100.0, 600.0)
"""Where the search may start; it does where the step times are nearest."""
_WITHOUT_GRAPH = (2.0, 6.0)
"""From each of these it is made: a floor that lies below the work has no slope that would lead to it."""


@dataclass(frozen=True)
class CostModel:
    """A fitted step cost, with how far it is off and how sure it is."""

    cost: StepCost
    points: int
    rms_error: float
    """Root mean square of the relative errors of the fitted step times."""
    found: tuple[float, ...]
    """ln of the parameters over what was believed."""
    covariance: tuple[tuple[float, ...], ...]
    """Of `found` (Gauss–Newton), widened where step times scatter by more than `NOISE`."""
    shortest_s: float

    def step_time_s(self, point: StepPoint) -> float:
        """Seconds of the mean step of such a batch: its kinds of steps, by their shares."""
        return float(Steps([point]).mean_s(self.cost)[0])

    def break_even_length(self, plain: StepPoint, own: StepPoint) -> float:
        """L*: tokens per step at which speculation breaks even at equal batch."""
        return self.step_time_s(own) / self.step_time_s(plain)

    def draws(self, count: int, seed: int = 0) -> list[StepCost]:
        """Step costs that fit about as well: what the step times leave open."""
        rng = np.random.default_rng(seed)
        # Cholesky's factor is the same on every machine; the default's may differ in its signs.
        values = rng.multivariate_normal(np.array(self.found), np.array(self.covariance), count, method="cholesky")
        return [_cost(row, self.shortest_s) for row in values]


def fit_cost(points: Sequence[StepPoint]) -> CostModel | None:
    """The step cost with the least squares of ln step times and of what is believed beforehand (`_BELIEFS`).

    None below six points or three batch sizes. Coefficients are positive by their logarithms. Others may give the same
    curve, which is what counts; `draws` gives some.
    """
    usable = [point for point in points if point.step_time_s > 0 and point.batch > 0]
    if len(usable) < MIN_POINTS or len({point.batch for point in usable}) < 3:
        return None
    shortest = min(point.step_time_s for point in usable)
    measured = np.log([point.step_time_s for point in usable])
    spread = np.array([sd for _, sd in _BELIEFS.values()])
    steps = Steps(usable)

    def residuals(values: NDArray[np.float64]) -> NDArray[np.float64]:
        foretold = np.log(steps.mean_s(_cost(values, shortest)))
        return np.concatenate([(foretold - measured) / NOISE, values / spread])

    starts = [
        min((_start(knee, floor) for knee in _KNEES), key=lambda one: _squares(residuals(one)))
        for floor in (_WITHOUT_GRAPH if steps.leave_graphs else _WITHOUT_GRAPH[:1])
    ]
    best = min((least_squares(residuals, start) for start in starts), key=lambda one: float(one.cost))
    jacobian = np.asarray(best.jac, dtype=np.float64)
    misses = np.asarray(best.fun, dtype=np.float64)[: len(usable)]
    scatter = max(1.0, float(misses @ misses) / max(1.0, len(usable) - len(_BELIEFS) / 2))
    covariance = np.linalg.inv(jacobian.T @ jacobian) * scatter
    cost = _cost(best.x, shortest)
    errors = steps.mean_s(cost) / np.exp(measured) - 1.0
    return CostModel(
        cost,
        len(usable),
        math.sqrt(float(errors @ errors) / len(usable)),
        tuple(map(float, best.x)),
        tuple(tuple(map(float, row)) for row in covariance),
        shortest,
    )


def _start(knee: float, without_graph: float) -> NDArray[np.float64]:
    at = {"knee": knee, "without_graph": without_graph}
    return np.array([math.log(at.get(name, middle) / middle) for name, (middle, _) in _BELIEFS.items()])


def _squares(values: NDArray[np.float64]) -> float:
    return float(values @ values)


def _cost(values: NDArray[np.float64], shortest_s: float) -> StepCost:
    """The step cost of parameters given as ln over what is believed."""
    named = {
        name: middle * math.exp(float(value))
        for (name, (middle, _)), value in zip(_BELIEFS.items(), values, strict=True)
    }
    weights = named["weights"] * shortest_s
    return StepCost(
        launch_s=named["launch"] * shortest_s,
        weights_s=weights,
        per_token_s=weights / named["knee"] ** named["exponent"],
        exponent=named["exponent"],
        per_request_s=named["per_request"] * shortest_s,
        drafting_s=named["drafting"] * shortest_s,
        drafting_per_request_s=named["drafting_per_request"] * shortest_s,
        without_graph_s=named["without_graph"] * shortest_s,
    )


def predicted_break_even(speedup: Callable[[int], float], highest: int) -> int:
    """The last concurrency up to which all pay: 0 if 1 already costs, `highest` if none up to there does."""
    return next((level - 1 for level in range(1, highest + 1) if speedup(level) < 1.0), highest)


def between_levels(speedups: Mapping[int, float]) -> Callable[[int], float]:
    """The speed-up at any concurrency: its ln is linear in log2 of the concurrency, flat beyond the measured levels."""
    levels = sorted(speedups)
    places = [math.log2(level) for level in levels]
    values = [math.log(speedups[level]) for level in levels]
    return lambda level: math.exp(float(np.interp(math.log2(level), places, values)))
