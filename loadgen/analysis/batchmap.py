"""From concurrency (requests in flight at the client) to batch (requests per engine step), as measured."""

import math
from collections.abc import Sequence

from loadgen.analysis.model import LevelFinding


def batches_of(levels: Sequence[LevelFinding]) -> tuple[tuple[int, float | None], ...]:
    """(concurrency, batch) of measured levels."""
    return tuple((level.concurrency, level.batch) for level in levels)


def batch_at(levels: Sequence[tuple[int, float | None]], concurrency: float) -> float:
    """Requests per engine step of the speculating server at a concurrency, from (concurrency, batch) of its levels.

    Linear in log–log between the measured levels, with the end segments' batch share kept beyond them; a level without
    a known batch is left out, and without any the batch is the concurrency.
    """
    known = sorted((at, batch) for at, batch in levels if batch is not None and batch > 0)
    if not known:
        return concurrency
    below = [point for point in known if point[0] <= concurrency]
    above = [point for point in known if point[0] >= concurrency]
    if not below or not above:
        at, batch = (below or above)[-1 if below else 0]
        return batch * concurrency / at
    (low, low_batch), (high, high_batch) = below[-1], above[0]
    if low == high:
        return low_batch
    share = math.log(concurrency / low) / math.log(high / low)
    return low_batch * math.exp(share * math.log(high_batch / low_batch))
