"""A set of figures in the six numbers that stand in every output."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Distribution:
    """{n, mean, p50, p90, p99, max}; all None when n = 0. Percentiles interpolate linearly (numpy's default)."""

    n: int
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    max: float | None = None

    @property
    def low_confidence_p99(self) -> bool:
        """True below n = 100: such a p99 rests on interpolation with the largest value (case C32)."""
        return self.n < 100


def distribution(values: Iterable[float | None]) -> Distribution:
    """The distribution of the values that exist; None and non-finite ones are left out of n."""
    data = np.array([v for v in values if v is not None], dtype=float)
    data = data[np.isfinite(data)]
    if data.size == 0:
        return Distribution(n=0)
    p50, p90, p99 = (float(q) for q in np.percentile(data, (50, 90, 99)))
    return Distribution(int(data.size), float(data.mean()), p50, p90, p99, float(data.max()))
