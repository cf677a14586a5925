"""A server as a queueing station whose speed depends on its company: from closed-loop levels to rates and users.

The measured X(C), requests/s at C in flight, is the station's speed (a flow-equivalent server: Chandy, Herzog and Woo,
IBM J. Res. Dev. 19, 1975). How many requests it holds then follows in closed form: a birth-death chain for Poisson
arrivals, and for N users who think between requests, whose means are those of exact mean-value analysis (Reiser and
Lavenberg, J. ACM 27, 1980). What a request feels is taken from the level that it meets on arrival.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
GRID = (np.arange(200) + 0.5) / 200
"""Shares at which a level's latencies are kept."""
NEGLIGIBLE = 1e-12
HALVINGS = 24


@dataclass(frozen=True)
class Curve:
    """(level, requests/s) of a closed loop, levels ascending."""

    points: tuple[tuple[int, float], ...]

    @property
    def top(self) -> int:
        """The highest measured level."""
        return self.points[-1][0]

    def rates(self) -> Floats:
        """X(1), X(2), … X(top): log-log between the levels, in proportion below the first one."""
        levels = np.array([level for level, _ in self.points], dtype=float)
        values = np.array([rate for _, rate in self.points], dtype=float)
        at = np.arange(1, self.top + 1, dtype=float)
        inner: Floats = np.exp(np.interp(np.log(at), np.log(levels), np.log(values)))
        below = at < levels[0]
        inner[below] = values[0] * at[below] / levels[0]
        return inner


@dataclass(frozen=True)
class Company:
    """How many requests are in the server."""

    met: Floats
    """Share of requests that have 1, 2, … top in flight once they arrived, themselves counted."""
    beyond: float
    """Share that has more than the top level."""
    in_flight: float
    rate_per_s: float
    lone: bool = False
    """Nobody else's starts are random: a closed loop without thinking."""


def under_rate(curve: Curve, rate_per_s: float) -> Company | None:
    """The company under Poisson arrivals; None if the server cannot keep up (X is taken as flat above the top)."""
    speeds = curve.rates()
    ratio = rate_per_s / speeds[-1]
    if ratio >= 1 - NEGLIGIBLE:
        return None
    # π(n) for n = 0 … top, then a geometric tail
    logs = np.concatenate(([0.0], np.cumsum(np.log(rate_per_s) - np.log(speeds))))
    weights = np.exp(logs - logs.max())
    tail = weights[-1] * ratio / (1 - ratio)
    total = weights.sum() + tail
    share = weights / total
    top = curve.top
    tail_mean = share[-1] * (top * ratio / (1 - ratio) + ratio / (1 - ratio) ** 2)
    # arrivals see the time average (PASTA), and come on top of it
    return Company(
        met=share[:-1],
        beyond=float(share[-1] + tail / total),
        in_flight=float((share * np.arange(top + 1)).sum() + tail_mean),
        rate_per_s=rate_per_s,
    )


def with_users(curve: Curve, users: int, think_s: float) -> Company:
    """The company of N users who think for `think_s` on average between a reply and the next request."""
    if think_s <= 0:
        met = np.zeros(curve.top)
        if users <= curve.top:
            met[users - 1] = 1.0
        speed = float(curve.rates()[min(users, curve.top) - 1])
        return Company(met, 0.0 if users <= curve.top else 1.0, float(users), speed, lone=True)
    whole = _chain(curve, users, think_s)
    # an arriving user sees the system as it were without them (arrival theorem)
    seen = _chain(curve, users - 1, think_s)
    met = np.zeros(curve.top)
    known = seen[: curve.top]
    met[: known.size] = known
    in_flight = float((whole * np.arange(whole.size)).sum())
    return Company(met, max(0.0, float(seen[curve.top :].sum())), in_flight, (users - in_flight) / think_s)


def _chain(curve: Curve, users: int, think_s: float) -> Floats:
    """π(0 … users) of the birth-death chain with births (N − n) / Z and deaths X(n)."""
    speeds = curve.rates()
    n = np.arange(1, users + 1)
    deaths = speeds[np.minimum(n, curve.top) - 1]
    logs = np.concatenate(([0.0], np.cumsum(np.log((users - n + 1) / think_s) - np.log(deaths))))
    weights: Floats = np.exp(logs - logs.max())
    weights /= weights.sum()
    return weights


@dataclass(frozen=True)
class Latencies:
    """One metric at every level from 1 to the top, on the grid of shares."""

    table: Floats
    """Shape (top, 200), seconds, ascending along a row."""
    counts: Floats
    """Requests behind each measured level."""
    parts: Floats
    """Shape (top, measured levels): how much of a row comes from which measured level; rows sum to 1."""

    def mixed(self, company: Company) -> "Mixture":
        """What requests feel in this company; those beyond the top level count as infinitely slow."""
        weights = np.repeat(company.met / GRID.size, GRID.size)
        values = self.table.ravel()
        used = weights > NEGLIGIBLE
        order = np.argsort(values[used], kind="stable")
        met = company.met.sum()
        # rows between two levels repeat those levels' requests: only what was measured counts
        spread = ((company.met @ self.parts / met) ** 2 / self.counts).sum() if met > 0 else math.inf
        return Mixture(values[used][order], np.cumsum(weights[used][order]), float(1 / spread) if spread > 0 else 0.0)


@dataclass(frozen=True)
class Mixture:
    """A weighted distribution of seconds."""

    values: Floats
    cumulative: Floats
    """Ends below 1 where some requests lie beyond the measured levels."""
    n: float
    """Requests behind it (Kish's effective number)."""

    def quantile(self, share: float, wait: "Wait | None" = None) -> float:
        """The quantile, of the sum with an independent wait if given; infinite beyond the measured levels."""
        at = int(np.searchsorted(self.cumulative, share - 1e-9))
        if at >= self.values.size or math.isinf(self.values[at]):
            return math.inf
        if wait is None or wait.share <= 0:
            return float(self.values[at])
        weights = np.diff(self.cumulative, prepend=0.0)
        low = high = float(self.values[at])
        while self._within(high, weights, wait) < share:
            high += 10 / wait.decay_per_s
            if high > low + 1000 / wait.decay_per_s:
                return math.inf
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if self._within(middle, weights, wait) >= share else (middle, high)
        return high

    def _within(self, seconds: float, weights: Floats, wait: "Wait") -> float:
        count = int(np.searchsorted(self.values, seconds, side="right"))
        late = np.minimum(wait.share, wait.tail * np.exp(-wait.decay_per_s * (seconds - self.values[:count])))
        return float((weights[:count] * (1 - late)).sum())


@dataclass(frozen=True)
class Wait:
    """Time before a prompt's turn: more than t with the probability min(share, tail · e^(−decay · t))."""

    share: float
    tail: float
    decay_per_s: float


def prompt_wait(rate_per_s: float, service_s: float) -> Wait | None:
    """What Poisson arrivals wait for the prompts before them; None where there is nothing to wait for.

    A closed loop spreads its prompts, an open one clumps them. An M/D/1 queue of prompts alone, by the share ρ that
    waits, and its exact tail (1 − ρ) / (ρ e^(θD) − 1) · e^(−θt) with the root θ of λ (e^(θD) − 1) = θ
    (H. C. Tijms, A First Course in Stochastic Models, 2003, section 9.6).
    """
    load = rate_per_s * service_s
    if load <= 0:
        return None
    if load >= 1:
        return Wait(1.0, 1.0, 1e-9)
    high = 1 / service_s
    while rate_per_s * math.expm1(high * service_s) < high:
        high *= 2
    low = 1e-9
    for _ in range(2 * HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if rate_per_s * math.expm1(middle * service_s) < middle else (low, middle)
    return Wait(load, (1 - load) / (load * math.exp(high * service_s) - 1), high)


def latencies_of(levels: Sequence[tuple[int, Sequence[float]]]) -> Latencies | None:
    """Rows for 1 … top from (level, seconds) samples: quantile by quantile, log-log in the level; None if one is empty.

    Below the first level its own row holds. A failed request is an infinite value.
    """
    if not levels or any(len(values) == 0 for _, values in levels):
        return None
    rows = [np.quantile(np.array(values, dtype=float), GRID, method="higher") for _, values in levels]
    known = np.log(np.array([level for level, _ in levels], dtype=float))
    at = np.log(np.arange(1, levels[-1][0] + 1, dtype=float))
    high = np.clip(np.searchsorted(known, at), 0, len(levels) - 1)
    low = np.clip(high - 1, 0, None)
    gap = np.where(high == low, 1.0, known[high] - known[low])
    share = np.clip(np.where(high == low, 1.0, (at - known[low]) / gap), 0.0, 1.0)
    stacked = np.maximum(np.array(rows), 1e-9)
    counts = np.array([len(values) for _, values in levels], dtype=float)
    upper = np.log(stacked[high]) * share[:, None]
    # 0 · ∞ is no number: a weightless row adds nothing
    lower = np.where(share[:, None] == 1.0, 0.0, np.log(stacked[low])) * (1 - share[:, None])
    parts = np.zeros((at.size, counts.size))
    rows_at = np.arange(at.size)
    np.add.at(parts, (rows_at, low), 1 - share)
    np.add.at(parts, (rows_at, high), share)
    return Latencies(np.exp(lower + upper), counts, parts)
