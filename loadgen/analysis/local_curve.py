"""The crossing by a smooth curve through the levels around it, with a 95 % interval (docs/method.md, part 3).

The curve is a cubic smoothing spline in its Bayesian form: ln ratio = a + b·z + τ·(an integrated Wiener process), z =
log2 of the concurrency (G. Wahba, "Bayesian confidence intervals for the cross-validated smoothing spline", J. R.
Statist. Soc. B 45, 1983). How much it may bend (τ) is averaged over by its likelihood, so that what no level
tells of the curve in between is in the interval. So is the chance that the curve jumps between the two levels where it
turns (h200.md: a graph capture limit makes a cliff): its share grows with how much better a jump explains the levels.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from loadgen.analysis.signs import LevelStat

REACH = 0.75
"""Octaves to either side within which there must be three levels: a gap of a whole octave may hide a cliff."""
MIN_LEVELS = 3
USED = 2.0
"""Octaves to either side whose levels shape the curve."""
MIN_DEGREES = 3
BENDS = tuple(0.02 * 2.0**step for step in range(9))
"""τ: by how much the slope (ln ratio per octave) typically changes within an octave; a knee is 0.5, a cliff 5."""
JUMP_CHANCE = 0.1
"""Before any level is seen: the share of turns that are cliffs."""
JUMP = 0.5
"""Standard deviation of a cliff's ln ratio (0.56 was seen)."""
POINTS = 161
TAIL = 0.025

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """What the curve says of one crossing."""

    crossing: float
    """Concurrency where it passes 0: a real number."""
    ci95: tuple[float, float]


@dataclass(frozen=True)
class _Noise:
    """Variance of one pair's ln ratio and its degrees of freedom; and the same for what all levels share."""

    pair: float
    degrees: float
    common: float
    common_degrees: float


def local_curve(
    levels: Sequence[LevelStat], bracket: tuple[int, int], start: float, shifts: Sequence[float] = ()
) -> Curve | None:
    """The crossing inside a bracket of concurrencies; None where the levels near `start` are too few to draw a curve.

    The interval holds every place of the bracket where P(ln ratio > 0) lies between 2.5 and 97.5 %. `shifts` are the
    sessions' common shifts of ln ratio (from three sessions on): their scatter adds to the curve's height, so that the
    interval holds for server starts to come.
    """
    place = math.log2(start)
    near = [stat for stat in levels if abs(math.log2(stat.level) - place) <= REACH]
    used = [stat for stat in levels if abs(math.log2(stat.level) - place) <= USED]
    noise = _noise(near, shifts)
    if len(near) < MIN_LEVELS or noise is None:
        return None
    at = np.linspace(math.log2(bracket[0]), math.log2(bracket[1]), POINTS)
    above = _above(used, at, noise, place)
    if above[0] < 0.5:
        above = 1 - above
    inside = np.flatnonzero((above > TAIL) & (above < 1 - TAIL))
    turn = int(np.flatnonzero(above < 0.5)[0]) if above.min() < 0.5 else 0
    if not turn:
        return None
    # The sign turns for certain between these; the grid's own width is 1 / 160 of the bracket.
    first, last = (int(inside[0]), int(inside[-1])) if len(inside) else (turn, turn - 1)
    low, high = at[max(min(first, turn) - 1, 0)], at[min(max(last, turn - 1) + 1, POINTS - 1)]
    share = (above[turn - 1] - 0.5) / (above[turn - 1] - above[turn])
    crossing = at[turn - 1] + share * (at[turn] - at[turn - 1])
    return Curve(float(2**crossing), (float(2**low), float(2**high)))


def _noise(near: Sequence[LevelStat], shifts: Sequence[float]) -> _Noise | None:
    """From the repeats of the near levels; None if they are too few."""
    degrees = float(sum(stat.n - 1 for stat in near))
    if degrees < MIN_DEGREES:
        return None
    pair = math.fsum((stat.n - 1) * stat.sd**2 for stat in near if stat.sd is not None) / degrees
    if len(shifts) < 2:
        return _Noise(max(pair, 1e-12), degrees, 0.0, 1.0)
    common = float(np.var(shifts, ddof=1))
    # What the sessions share is in every level's scatter: the rest is the level's own.
    own = max(pair - common, 0.05 * pair)
    return _Noise(max(own, 1e-12), degrees, common / len(shifts), len(shifts) - 1.0)


def _above(used: Sequence[LevelStat], at: Floats, noise: _Noise, place: float) -> Floats:
    """P(ln ratio > 0) at each place, averaged over how much the curve may bend and whether it jumps at the turn."""
    places = np.log2([stat.level for stat in used])
    means = np.array([stat.mean for stat in used])
    errors = noise.pair / np.array([stat.n for stat in used], dtype=float)
    origin = min(float(places.min()), float(at.min()))
    between, across = _wiener(places - origin, places - origin), _wiener(at - origin, places - origin)
    own = (at - origin) ** 3 / 3
    lines, across_lines = _line(places - origin), _line(at - origin)
    squares = np.square(BENDS)[:, None, None]
    smooth = _fit(squares * between + np.diag(errors), lines, means)
    # Best linear unbiased prediction (universal kriging): what the process leaves open, and the line's own error.
    mean = (across_lines @ smooth.line + squares * (across @ smooth.rest))[:, :, 0]
    open_lines = across_lines - squares * (across @ (smooth.inverse @ lines))
    variance = squares[:, :, 0] * own - squares[:, :, 0] ** 2 * ((across @ smooth.inverse) * across).sum(axis=2)
    variance = variance + ((open_lines @ np.linalg.inv(smooth.information)) * open_lines).sum(axis=2)
    shares = _tail(mean, np.maximum(variance, 1e-15), noise)
    cliff, past = _cliff(places, means, at, place)
    jumping = _fit(squares * between + JUMP**2 * np.outer(past, past) + np.diag(errors), lines, means)
    weights = np.concatenate([smooth.fit + math.log1p(-JUMP_CHANCE), jumping.fit + math.log(JUMP_CHANCE)])
    relative = np.exp(weights - weights.max())
    jumps = relative[len(BENDS) :].sum()
    return np.asarray((relative[: len(BENDS)] @ shares + jumps * cliff) / relative.sum(), dtype=np.float64)


@dataclass(frozen=True)
class _Fit:
    """For each bend: restricted ln likelihood, inverse covariance, information of the line, the line, what is left."""

    fit: Floats
    inverse: Floats
    information: Floats
    line: Floats
    rest: Floats
    """Inverse covariance times residuals."""


def _fit(covariance: Floats, lines: Floats, means: Floats) -> _Fit:
    """Generalised least squares for a stack of covariances."""
    inverse = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
    information = lines.T @ inverse @ lines
    line = np.asarray(np.linalg.solve(information, lines.T @ inverse @ means[:, None]), dtype=np.float64)
    residuals = means[:, None] - lines @ line
    rest = inverse @ residuals
    spread = np.linalg.slogdet(information)[1] - np.linalg.slogdet(inverse)[1]
    return _Fit(-0.5 * (spread + (residuals * rest).sum(axis=(1, 2))), inverse, information, line, rest)


def _cliff(places: Floats, means: Floats, at: Floats, place: float) -> tuple[Floats, Floats]:
    """P(ln ratio > 0) if it jumps between the levels around `place`, anywhere alike; and which levels lie past that."""
    upper = min(max(int(np.searchsorted(places, place, side="right")), 1), len(places) - 1)
    ramp = np.clip((at - places[upper - 1]) / (places[upper] - places[upper - 1]), 0.0, 1.0)
    falls = means[upper - 1] > means[upper]
    return np.asarray(1 - ramp if falls else ramp, dtype=np.float64), (places >= places[upper]).astype(np.float64)


def _tail(mean: Floats, variance: Floats, noise: _Noise) -> Floats:
    """P(value > 0), Student's t with Satterthwaite's degrees of freedom."""
    total = variance + noise.common
    degrees = total**2 / (variance**2 / noise.degrees + noise.common**2 / noise.common_degrees)
    return np.asarray(stdtr(degrees, mean / np.sqrt(total)), dtype=np.float64)


def _line(places: Floats) -> Floats:
    return np.stack([np.ones_like(places), places], axis=1)


def _wiener(first: Floats, second: Floats) -> Floats:
    """Covariance of an integrated Wiener process between the places (Wahba 1983): m²(3M − m)/6, m ≤ M."""
    low = np.minimum(first[:, None], second[None, :])
    high = np.maximum(first[:, None], second[None, :])
    return np.asarray(low**2 * (3 * high - low) / 6, dtype=np.float64)
