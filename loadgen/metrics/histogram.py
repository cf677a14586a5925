"""Histograms as vLLM exports them: merging engines, and what a quantile can be told from buckets."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Buckets = tuple[tuple[float, float], ...]
"""(upper bound, cumulative count), ascending, +inf last."""


def sort_buckets(buckets: Mapping[float, float]) -> Buckets:
    """The buckets by their numeric bound: text order would put 10.0 before 2.5."""
    return tuple(sorted(buckets.items()))


def merge(parts: Iterable[Mapping[float, float]]) -> tuple[Buckets, tuple[float, ...]]:
    """(buckets summed over the bounds that all parts share, bounds that were dropped)."""
    found = list(parts)
    if not found:
        return (), ()
    common = set(found[0]).intersection(*found[1:])
    dropped = set().union(*found) - common
    return sort_buckets({bound: sum(part[bound] for part in found) for bound in common}), tuple(sorted(dropped))


@dataclass(frozen=True)
class QuantileEstimate:
    """What buckets say about a quantile: the bucket's bounds, and an interpolated value where that means anything."""

    q: float
    lower: float
    """0 for the first bucket."""
    upper: float
    """inf above the last finite bound."""
    value: float | None
    """Linear inside the bucket, as Prometheus' histogram_quantile; None in the first and above the last bucket."""

    def text(self, scale: float = 1.0, unit: str = "") -> str:
        """Such as `~0.6 s (0.5 to 0.75)`, `≤ 0.01 s` or `> 2 s`; values times `scale`."""
        blank = f" {unit}" if unit else ""
        if self.value is not None:
            bounds = f"{self.lower * scale:g} to {self.upper * scale:g}"
            return f"~{self.value * scale:.4g}{blank} ({bounds})"
        if math.isinf(self.upper):
            return f"> {self.lower * scale:g}{blank}"
        return f"≤ {self.upper * scale:g}{blank}"


def quantile(buckets: Sequence[tuple[float, float]], q: float) -> QuantileEstimate | None:
    """The q-quantile's estimate from cumulative buckets; None without observations or without buckets.

    Inside a bucket observations are taken as spread evenly (Prometheus, histogram_quantile). In the first bucket that
    would invent a figure from its bound alone, and above the last finite bound there is none.
    """
    ordered = sorted(buckets)
    if not ordered or ordered[-1][1] <= 0:
        return None
    rank = q * ordered[-1][1]
    below, lower = 0.0, 0.0
    for index, (bound, cumulative) in enumerate(ordered):
        if cumulative >= rank and cumulative > below:
            if index == 0 or math.isinf(bound):
                return QuantileEstimate(q, lower, bound, None)
            value = lower + (bound - lower) * (rank - below) / (cumulative - below)
            return QuantileEstimate(q, lower, bound, value)
        below, lower = cumulative, bound
    return QuantileEstimate(q, lower, math.inf, None)
