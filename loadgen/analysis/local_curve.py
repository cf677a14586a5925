"""The crossing by a smooth curve through the levels around it, with a 95 % interval (docs/method.md, part 3).

The curve is a cubic smoothing spline in its Bayesian form: ln ratio = a + b·z + τ·(an integrated Wiener process), z =
log2 of the concurrency (G. Wahba, "Bayesian confidence intervals for the cross-validated smoothing spline", J. R.
Statist. Soc. B 45, 1983). How much it may bend (τ) is averaged over by its likelihood, so that what no level
tells of the curve in between is in the interval. So is the chance that the curve jumps between the two levels where it
turns (h200.md: a graph capture limit makes a cliff): its share grows with how much better a jump explains the levels.
And each whole concurrency departs from the curve a little, for batches are padded to graph sizes: between two levels
that were measured lie steps that neither shows.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
BENDS = tuple(0.02 * 2.0**step for step in range(7))
"""τ: by how much the slope (ln ratio per octave) typically changes within an octave; a knee is 0.5. Cliffs, which would
be 5, have a chance of their own."""
RIPPLES = (0.025, 0.05)
"""δ: each whole concurrency C departs from the curve by a standard deviation of δ times the padding's share, 4 / C (at
most a half): batches are padded to the sizes of CUDA graphs, multiples of 8 in vLLM, so a ratio has steps that no
smooth curve has."""
PADDING = 4.0
JUMP_CHANCE = 0.1
"""Before any level is seen: the share of turns that are cliffs."""
JUMP = 0.5
"""Standard deviation of a cliff's ln ratio (0.56 was seen)."""
POINTS = 161
MOST_WHOLE = 256
"""Brackets of more whole numbers are looked at on the even grid alone."""
TAIL = 0.025

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Prior:
    """What is held possible of a curve before any level is seen."""

    bends: tuple[float, ...] = BENDS
    ripples: tuple[float, ...] = RIPPLES
    jump_chance: float = JUMP_CHANCE
    """Above 0."""

    @property
    def shapes(self) -> tuple[tuple[float, float], ...]:
        """All pairs of bend and ripple, which are alike likely."""
        return tuple(itertools.product(self.bends, self.ripples))


PRIOR = Prior()


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
    levels: Sequence[LevelStat],
    bracket: tuple[int, int],
    start: float,
    shifts: Sequence[float] = (),
    prior: Prior = PRIOR,
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
    at = _places(bracket)
    above = _above(used, at, noise, place, prior)
    if above[0] < 0.5:
        above = 1 - above
    turn = int(np.flatnonzero(above < 0.5)[0]) if above.min() < 0.5 else 0
    if not turn:
        return None
    open_at = np.flatnonzero((above > TAIL) & (above < 1 - TAIL))
    # The sign turns for certain between these; where it jumps from one to the next, the interval is what lies between.
    first = int(open_at[0]) if len(open_at) else turn
    last = int(open_at[-1]) if len(open_at) else turn - 1
    low = _passes(at, above, min(first, turn), 1 - TAIL)
    high = _passes(at, above, max(last, turn - 1) + 1, TAIL)
    return Curve(float(2 ** _passes(at, above, turn, 0.5)), (float(2**low), float(2**high)))


def _places(bracket: tuple[int, int]) -> Floats:
    """log2 of where the curve is looked at: an even grid, and every whole concurrency."""
    even = np.linspace(math.log2(bracket[0]), math.log2(bracket[1]), POINTS)
    if bracket[1] - bracket[0] > MOST_WHOLE:
        return even
    return np.asarray(np.union1d(even, np.log2(np.arange(bracket[0], bracket[1] + 1))), dtype=np.float64)


def _passes(at: Floats, above: Floats, index: int, level: float) -> float:
    """Where P passes `level` between the point before `index` and `index`; the point itself if it does not."""
    if not 0 < index < len(at):
        return float(at[min(index, len(at) - 1)])
    before, after = above[index - 1], above[index]
    if not before >= level >= after or before == after:
        return float(at[index - 1] if after > level else at[index])
    return float(at[index - 1] + (before - level) / (before - after) * (at[index] - at[index - 1]))


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


def _above(used: Sequence[LevelStat], at: Floats, noise: _Noise, place: float, prior: Prior) -> Floats:
    """P(ln ratio > 0) at each place, averaged over bends, ripples, and whether the curve jumps at the turn."""
    places = np.log2([stat.level for stat in used])
    means = np.array([stat.mean for stat in used])
    errors = noise.pair / np.array([stat.n for stat in used], dtype=float)
    origin = min(float(places.min()), float(at.min()))
    between, across = _wiener(places - origin, places - origin), _wiener(at - origin, places - origin)
    own = (at - origin) ** 3 / 3
    lines, across_lines = _line(places - origin), _line(at - origin)
    squares, ripples = (np.square(values)[:, None, None] for values in zip(*prior.shapes, strict=True))
    hats = _hats(at, [stat.level for stat in used])
    between_all = squares * between + ripples * np.diag(_padding(np.array([stat.level for stat in used])))
    across_all = squares * across + ripples * hats
    smooth = _fit(between_all + np.diag(errors), lines, means)
    # Best linear unbiased prediction (universal kriging): what the process leaves open, and the line's own error.
    mean = (across_lines @ smooth.line + across_all @ smooth.rest)[:, :, 0]
    open_lines = across_lines - across_all @ (smooth.inverse @ lines)
    own_all = squares[:, :, 0] * own + ripples[:, :, 0] * _own_hats(at)
    variance = own_all - ((across_all @ smooth.inverse) * across_all).sum(axis=2)
    variance = variance + ((open_lines @ np.linalg.inv(smooth.information)) * open_lines).sum(axis=2)
    shares = _tail(mean, np.maximum(variance, 1e-15), noise)
    cliff, past = _cliff(places, means, at, place)
    jumping = _fit(between_all + JUMP**2 * np.outer(past, past) + np.diag(errors), lines, means)
    weights = np.concatenate([smooth.fit + math.log1p(-prior.jump_chance), jumping.fit + math.log(prior.jump_chance)])
    relative = np.exp(weights - weights.max())
    jumps = relative[len(prior.shapes) :].sum()
    return np.asarray((relative[: len(prior.shapes)] @ shares + jumps * cliff) / relative.sum(), dtype=np.float64)


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


def _hats(at: Floats, levels: Sequence[int]) -> Floats:
    """Covariance of the places' departures with the levels', in units of δ²: all of a level's at the level, none from
    the next whole number on, for a ratio between two whole concurrencies is the line between theirs.
    """
    whole, share = _whole(at)
    columns = [np.where(whole == level, 1 - share, np.where(whole + 1 == level, share, 0.0)) for level in levels]
    return np.asarray(np.stack(columns, axis=1) * _padding(np.array(levels)), dtype=np.float64)


def _own_hats(at: Floats) -> Floats:
    """Variance of the places' departures, in units of δ²."""
    whole, share = _whole(at)
    return np.asarray((1 - share) ** 2 * _padding(whole) + share**2 * _padding(whole + 1), dtype=np.float64)


def _padding(levels: NDArray[Any]) -> Floats:
    """Square of the share of a batch that is padding, at most."""
    return np.asarray(np.minimum(PADDING / levels, 0.5) ** 2, dtype=np.float64)


def _whole(at: Floats) -> tuple[Floats, Floats]:
    """The whole concurrency at or below each place, and how far it is on the way to the next one, in log2."""
    whole = np.floor(2**at + 1e-9)
    share = (at - np.log2(whole)) / (np.log2(whole + 1) - np.log2(whole))
    return np.asarray(whole, dtype=np.float64), np.clip(share, 0.0, 1.0)
