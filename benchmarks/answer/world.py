"""A world whose break-even is known: a true curve, and noise as the banked cells show it."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

from benchmarks.answer.bank import WINDOW_S, Bank

Floats = NDArray[np.float64]
SMOOTHING = 0.5
"""Kernel of the smoothed bootstrap, in standard deviations of the residuals (Silverman & Young 1987; about 24^-0.2):
without it three repeats are now and then the same residual thrice, and a spread of 0 makes any level sure."""
SLOW_FACTOR = 1.3
SLOW_S = 3.0
"""As the simulator's slow phases."""


@dataclass(frozen=True)
class World:
    """True ln speed-up by concurrency, and how repeats scatter around it.

    Residuals are draws from the bank of the nearest banked level, less their mean there, a little smoothed; so spread
    and skew are those of simulated cells. Start effects and slow phases are drawn on top, as the simulator draws them.
    """

    name: str
    curve: Callable[[int], float]
    residuals: dict[int, Floats]
    seconds: dict[int, float]
    """Measured seconds of one pair, by level."""
    grid: tuple[int, ...]
    """The levels that a sweep starts with."""
    highest: int
    """max-num-seqs."""
    start_sd: float = 0.0
    """Standard deviation of the ln speed of one server start; a pair of servers differs by √2 of it."""
    slow_share: float = 0.0
    scale: float = 1.0
    """The bank's noise is multiplied by this."""
    _places: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_places", np.log2(sorted(self.residuals)))

    def shift(self, rng: np.random.Generator) -> float:
        """The common shift of ln ratio that one start of both servers has."""
        return self.start_sd * math.sqrt(2) * float(rng.standard_normal())

    def draw(self, rng: np.random.Generator, level: int, count: int, shift: float) -> list[float]:
        """`count` repeats of one level."""
        kept = self.residuals[self._nearest(level)]
        drawn = rng.choice(kept, count) + SMOOTHING * np.std(kept) * rng.standard_normal(count)
        noise = self.scale * drawn / math.sqrt(1 + SMOOTHING**2)
        if self.slow_share:
            noise = noise + self._slow(rng, count) - self._slow(rng, count)
        return [self.curve(level) + shift + float(value) for value in noise]

    def pair_seconds(self, level: int) -> float:
        """Both windows of one pair; in a closed loop they grow with the level beyond the banked one."""
        nearest = self._nearest(level)
        return max(self.seconds[nearest] * max(level / nearest, 1.0), 2 * WINDOW_S)

    def _nearest(self, level: int) -> int:
        return sorted(self.residuals)[int(np.argmin(np.abs(self._places - math.log2(level))))]

    def _slow(self, rng: np.random.Generator, count: int) -> Floats:
        """ln of what slow phases leave of a window's rate: the window cuts one or two phases, each slow by its draw."""
        into = rng.uniform(0.0, SLOW_S, count)
        first = np.minimum(SLOW_S - into, WINDOW_S) / WINDOW_S
        slow = rng.uniform(size=(2, count)) < self.slow_share
        slow_time = first * slow[0] + (1 - first) * slow[1]
        return np.asarray(np.log(1 - slow_time * (1 - 1 / SLOW_FACTOR)), dtype=np.float64)

    def crossings(self, shift: float = 0.0) -> tuple[tuple[float, str], ...]:
        """(concurrency, direction) of every sign change between neighbouring integers up to `highest`, with `shift`."""
        found = []
        before = self.curve(1) + shift
        for level in range(1, self.highest):
            after = self.curve(level + 1) + shift
            if (before >= 0) != (after >= 0):
                share = before / (before - after)
                exact = level * ((level + 1) / level) ** share
                found.append((exact, "down" if before >= 0 else "up"))
            before = after
        return tuple(found)


def smooth(points: dict[int, float]) -> Callable[[int], float]:
    """A curve through (level, ln speed-up), smooth in log2 of the level and without overshoot (PCHIP)."""
    levels = sorted(points)
    curve = PchipInterpolator(np.log2(levels), [points[level] for level in levels], extrapolate=True)
    known: dict[int, float] = {}

    def at(level: int) -> float:
        if level not in known:
            known[level] = float(curve(math.log2(min(max(level, levels[0]), levels[-1]))))
        return known[level]

    return at


def residuals_of(bank: Bank) -> dict[int, Floats]:
    """The bank's draws around their own mean, at each level, with n / (n − 1) put back into their variance."""
    return {
        level: (np.array(draws) - np.mean(draws)) * math.sqrt(len(draws) / (len(draws) - 1))
        for level, draws in bank.draws.items()
    }
