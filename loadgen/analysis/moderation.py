"""Variances that learn from each other: a moderated t for a handful of levels with three repeats each.

Source: G. K. Smyth, "Linear models and empirical Bayes methods for assessing differential expression in microarray
experiments", Statistical Applications in Genetics and Molecular Biology 3(1), 2004, part 6.2; with a trend over the
levels as in limma-trend (C. W. Law et al., Genome Biology 15:R29, 2014), a cap and a guard that docs/method.md tests.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, polygamma

MIN_LEVELS = 3
"""Fewer variances say nothing about how variances differ."""
MIN_TREND_LEVELS = 4
"""From here on the variance may rise or fall with log2 of the level: low concurrency is often noisier (vllm#53436)."""
MAX_PRIOR_DEGREES = 6.0
"""The other levels never weigh more than three repeats of three: six levels cannot prove that variances are equal."""
OUTLIER = 3.0
"""A level this much more variable than the others foretell keeps its own variance."""
FLOOR = 1e-5
"""A variance is not taken below this share of the median one: ln 0 would make the fit meaningless."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """A variance, the degrees of freedom it stands on, and the level it belongs to."""

    level: int
    variance: float
    degrees: float


def moderated(spreads: Sequence[Spread]) -> tuple[Spread, ...]:
    """Each level's variance drawn towards what all levels say, in the order given.

    s̃² = (d₀ s₀² + d s²) / (d₀ + d) with d₀ + d degrees of freedom. s₀² is the line through ln s² over log2 of the
    level, d₀ (at most 6) follows from the scatter around it. Fewer than three levels, levels without any
    spread, and a level that stands out come back as they are.
    """
    median = float(np.median([spread.variance for spread in spreads])) if spreads else 0.0
    if len(spreads) < MIN_LEVELS or median <= 0:
        return tuple(spreads)
    places = np.log2([spread.level for spread in spreads])
    degrees = np.array([spread.degrees for spread in spreads], dtype=float)
    variance = np.maximum([spread.variance for spread in spreads], FLOOR * median)
    centred = np.log(variance) - digamma(degrees / 2) + np.log(degrees / 2)
    prior_degrees, prior = _prior(places, centred, degrees)
    shrunk = (prior_degrees * prior + degrees * variance) / (prior_degrees + degrees)
    return tuple(
        spread
        if variance[i] > OUTLIER * _foretold(places, centred, i)
        else Spread(spread.level, float(shrunk[i]), min(prior_degrees + spread.degrees, float(degrees.sum())))
        for i, spread in enumerate(spreads)
    )


def _prior(places: Floats, centred: Floats, degrees: Floats) -> tuple[float, Floats]:
    """(d₀, s₀² per level): from the line through the centred ln variances and the scatter around it."""
    trend = len(places) >= MIN_TREND_LEVELS
    line = _line(places, centred, places, trend=trend)
    free = len(places) - (2 if trend else 1)
    excess = float(((centred - line) ** 2).sum() / free - polygamma(1, degrees / 2).mean())
    if excess <= 0:
        return MAX_PRIOR_DEGREES, np.exp(line)
    prior_degrees = 2 * inverse_trigamma(excess)
    shift = float(digamma(prior_degrees / 2)) - math.log(prior_degrees / 2)
    return min(prior_degrees, MAX_PRIOR_DEGREES), np.exp(line + shift)


def _foretold(places: Floats, centred: Floats, index: int) -> float:
    """The variance of one level as the others foretell it."""
    others = np.arange(len(places)) != index
    line = _line(places[others], centred[others], places[[index]], trend=len(places) >= MIN_TREND_LEVELS)
    return math.exp(float(line[0]))


def _line(places: Floats, values: Floats, at: Floats, *, trend: bool) -> Floats:
    """The least-squares line at `at`, or the mean."""
    if not trend:
        return np.full(len(at), values.mean())
    slope, start = np.polyfit(places, values, 1)
    return np.asarray(start + slope * at, dtype=np.float64)


def inverse_trigamma(value: float) -> float:
    """x with trigamma(x) = value > 0, by Newton's method on 1 / trigamma (Smyth 2004, appendix)."""
    if value > 1e7:
        return 1 / math.sqrt(value)
    if value < 1e-6:
        return 1 / value
    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, x))
        x += step
        if -step / x < 1e-9:
            break
    return x
