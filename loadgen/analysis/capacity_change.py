"""Load points that were not measured as such: a schedule put together from static servers, and a weaker acceptance."""

import math
from collections.abc import Sequence
from dataclasses import replace

from loadgen.analysis.capacity_model import LoadPoint, RequestTimes

THIRD = 1 / 3


def weaker_factor(tokens_per_step: float) -> float:
    """Tokens per step after / before, if a third fewer drafted tokens are accepted: (1 + 2/3 (L − 1)) / L.

    Every step gives one token of its own; only what drafts add to it shrinks.
    """
    return (1 + (1 - THIRD) * (tokens_per_step - 1)) / tokens_per_step


def weaken(point: LoadPoint) -> LoadPoint | None:
    """The same level with acceptance a third lower; None where tokens per step are unknown or nothing is gained.

    A step verifies as many tokens as before, so the measured step time stays: decoding takes 1 / factor as long, the
    time to the first token stays, and the rate falls as the mean request lasts longer (Little's law at fixed C).
    """
    if point.tokens_per_step is None or point.tokens_per_step <= 1.0:
        return None
    stretch = 1 / weaker_factor(point.tokens_per_step)
    ended = tuple(_stretched(one, stretch) for one in point.ended)
    slower = _mean_e2e(point.ended) / _mean_e2e(ended)
    return replace(
        point,
        ended=ended,
        requests_per_s=point.requests_per_s * slower,
        tokens_per_s=point.tokens_per_s * slower,
        tokens_per_step=point.tokens_per_step / stretch,
    )


def _stretched(times: RequestTimes, stretch: float) -> RequestTimes:
    if math.isinf(times.e2e_s):
        return times
    return RequestTimes(
        times.ttft_s,
        None if times.tpot_s is None else times.tpot_s * stretch,
        times.ttft_s + (times.e2e_s - times.ttft_s) * stretch,
    )


def _mean_e2e(times: Sequence[RequestTimes]) -> float:
    whole = [one.e2e_s for one in times if math.isfinite(one.e2e_s)]
    return math.fsum(whole) / len(whole) if whole else 1.0


def compose(
    ranges: Sequence[Sequence[int]],
    batches: dict[int, float],
    by_depth: dict[int, Sequence[LoadPoint]],
) -> tuple[LoadPoint, ...]:
    """The levels of a schedule `[[first batch, last batch, K], …]`, each one from the static server with its K.

    `batches` maps a level to the batch that decides (of the speculating server), `by_depth` a K to its levels; 0 is the
    server without speculation. A level whose K was not measured is left out.
    """
    found: list[LoadPoint] = []
    for level, batch in sorted(batches.items()):
        depth = next((k for first, last, k in ranges if first - 0.5 <= batch < last + 0.5), None)
        at = [point for point in by_depth.get(depth, ()) if point.level == level] if depth is not None else []
        found += at
    return tuple(found)
