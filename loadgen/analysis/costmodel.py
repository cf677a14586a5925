"""The cost of an engine step, fitted to measured ones; and break-evens that were not run (docs/method.md, part 6)."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from loadgen.analysis.model import LevelFinding

MIN_POINTS = 6
"""Four coefficients and a bend: fewer step times fit anything."""


@dataclass(frozen=True)
class StepPoint:
    """One measured step time. `drafted` is draft tokens per request and step (0 for the baseline)."""

    batch: float
    drafted: float
    step_time_s: float
    speculates: bool

    @property
    def verified(self) -> float:
        """Tokens that the target model computes per step: batch × (1 + drafted)."""
        return self.batch * (1 + self.drafted)


@dataclass(frozen=True)
class CostModel:
    """t = fixed + Σ per_token · max(0, verified − knee) + per_request · batch, and where it speculates besides
    drafting + drafting_per_request · batch.

    Seconds, tokens and requests. Below the first knee a step reads the weights whatever it computes (memory-bound);
    above it every verified token costs. Source: the roofline form of vllm-facts part 6, its maximum written as a convex
    piecewise-linear curve, and t_0 and the weights' time in one constant, for step times cannot tell them apart. The
    curve is what counts: other coefficients may give the same one.
    """

    fixed_s: float
    knees: tuple[tuple[float, float], ...]
    """(verified tokens, seconds per verified token more from there on), ascending."""
    per_request_s: float
    drafting_s: float
    drafting_per_request_s: float
    points: int
    rms_error: float
    """Root mean square of the relative errors of the fitted step times."""

    def step_time_s(self, batch: float, drafted: float, *, speculates: bool) -> float:
        """Seconds of one step."""
        verified = batch * (1 + drafted)
        bends = math.fsum(slope * max(0.0, verified - knee) for knee, slope in self.knees)
        time_s = self.fixed_s + bends + self.per_request_s * batch
        return time_s + (self.drafting_s + self.drafting_per_request_s * batch if speculates else 0.0)

    def break_even_length(self, batch: float, drafted: float) -> float:
        """L*: tokens per step at which speculation with so many drafted tokens breaks even at this batch."""
        own = self.step_time_s(batch, drafted, speculates=True)
        return own / self.step_time_s(batch, 0.0, speculates=False)

    def speedup(self, batch: float, drafted: float, tokens_per_step: float) -> float:
        """Expected ratio of output tokens/s at equal batch."""
        return tokens_per_step / self.break_even_length(batch, drafted)


def step_points(levels: Sequence[LevelFinding]) -> tuple[StepPoint, ...]:
    """Two points per explained level: the profile's step and the baseline's."""
    found = []
    for level in levels:
        why = level.explanation
        if why is None or not level.valid or level.batch is None or level.baseline_batch is None:
            continue
        drafted = 0.0
        if level.draft_tokens and level.drafts and level.draft_coverage is not None:
            drafted = level.draft_tokens / level.drafts * level.draft_coverage
        found.append(StepPoint(level.batch, drafted, why.step_time_s, speculates=True))
        found.append(StepPoint(level.baseline_batch, 0.0, why.baseline_step_time_s, speculates=False))
    return tuple(found)


def fit_cost(points: Sequence[StepPoint]) -> CostModel | None:
    """The model with the least relative squares and no negative cost; None below six points or three batch sizes.

    The curve may bend at every measured number of verified tokens but the largest. Non-negative least squares keeps it
    rising and convex and sets most bends to 0 (Lawson & Hanson, Solving Least Squares Problems, 1974, chapter 23).
    """
    usable = [point for point in points if point.step_time_s > 0 and point.batch > 0]
    if len(usable) < MIN_POINTS or len({point.batch for point in usable}) < 3:
        return None
    knees = sorted({point.verified for point in usable})[:-1]
    times = np.array([point.step_time_s for point in usable])
    rows = np.array([_features(point, knees) for point in usable])
    coefficients, residual = nnls(rows / times[:, None], np.ones(len(usable)))
    fixed, request, drafting, drafting_request, *slopes = (float(value) for value in coefficients)
    bends = tuple((knee, slope) for knee, slope in zip(knees, slopes, strict=True) if slope > 0)
    error = float(residual) / math.sqrt(len(usable))
    return CostModel(fixed, bends, request, drafting, drafting_request, len(usable), error)


def _features(point: StepPoint, knees: Sequence[float]) -> list[float]:
    spec = float(point.speculates)
    return [1.0, point.batch, spec, spec * point.batch, *(max(0.0, point.verified - knee) for knee in knees)]


def predict_speedups(probe: Sequence[LevelFinding], tokens_per_step: Mapping[int, float]) -> dict[int, float]:
    """Speed-up by level for a workload that was not run: its tokens per step / the probe's L* at that level.

    The probe is a profile whose L* was measured (`cost-probe`, or the same K on another workload); `tokens_per_step` is
    by level, and levels that either side lacks are left out. Holds for methods that draft in every step.
    """
    lengths = {level.concurrency: level.explanation for level in probe if level.valid}
    return {
        level: tokens_per_step[level] / why.break_even_tokens_per_step
        for level, why in lengths.items()
        if why is not None and level in tokens_per_step
    }


def predicted_break_even(speedup: Callable[[int], float], highest: int) -> int:
    """The last concurrency up to which all pay: 0 if 1 already costs, `highest` if none up to there does."""
    return next((level - 1 for level in range(1, highest + 1) if speedup(level) < 1.0), highest)


def between_levels(speedups: Mapping[int, float]) -> Callable[[int], float]:
    """The speed-up at any concurrency: its ln is linear in log2 of the concurrency, flat beyond the measured levels."""
    levels = sorted(speedups)
    places = [math.log2(level) for level in levels]
    values = [math.log(speedups[level]) for level in levels]
    return lambda level: math.exp(float(np.interp(math.log2(level), places, values)))
