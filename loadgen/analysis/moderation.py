"""Variances that learn from each other: Smyth's moderated t for a handful of levels with three repeats each.

Source: G. K. Smyth, "Linear models and empirical Bayes methods for assessing differential expression in microarray
experiments", Statistical Applications in Genetics and Molecular Biology 3(1), 2004, part 6.2.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, polygamma

MIN_LEVELS = 3
"""Fewer variances say nothing about how variances differ."""
FLOOR = 1e-5
"""A variance is not taken below this share of the median one: ln 0 would make the fit meaningless."""


@dataclass(frozen=True)
class Spread:
    """A variance and the degrees of freedom it stands on."""

    variance: float
    degrees: float


def moderated(spreads: Sequence[Spread]) -> tuple[Spread, ...]:
    """Each level's variance drawn towards the common one, as far as the levels agree, in the order given.

    s̃² = (d₀ s₀² + d s²) / (d₀ + d) with d₀ + d degrees of freedom, at most the sum of all d. d₀ and s₀² come from the
    mean and variance of ln s². Levels that agree give d₀ → ∞ (one pooled variance); levels that differ (low
    concurrency is often the noisier) give d₀ → 0, and each keeps its own. Fewer than three levels, or levels without
    any spread, come back as they are.
    """
    median = float(np.median([spread.variance for spread in spreads])) if spreads else 0.0
    if len(spreads) < MIN_LEVELS or median <= 0:
        return tuple(spreads)
    variance = np.maximum([spread.variance for spread in spreads], FLOOR * median)
    degrees = np.array([spread.degrees for spread in spreads], dtype=float)
    pooled_degrees = float(degrees.sum())
    centred = np.log(variance) - digamma(degrees / 2) + np.log(degrees / 2)
    excess = float(centred.var(ddof=1) - polygamma(1, degrees / 2).mean())
    if excess <= 0:
        pooled = float((variance * degrees).sum() / pooled_degrees)
        return tuple(Spread(pooled, pooled_degrees) for _ in spreads)
    prior_degrees = 2 * inverse_trigamma(excess)
    prior = math.exp(float(centred.mean()) + float(digamma(prior_degrees / 2)) - math.log(prior_degrees / 2))
    shrunk = (prior_degrees * prior + degrees * variance) / (prior_degrees + degrees)
    return tuple(
        Spread(float(value), min(prior_degrees + float(own), pooled_degrees))
        for value, own in zip(shrunk, degrees, strict=True)
    )


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
