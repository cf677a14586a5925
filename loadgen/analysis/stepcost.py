"""The form that the cost of an engine step has on a GPU (docs/method.md, part 6)."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from loadgen.analysis.steps import DECODE_ONLY, StepGroup

GRAPH_LIMIT = 512
"""vLLM's default `max_cudagraph_capture_size`: min(2 × max_num_seqs × (1 + K), 512)."""
SHARPNESS = 4.0
"""Exponent of the smooth maximum: at the knee itself a step takes 19 % longer than either term alone."""


@dataclass(frozen=True)
class StepPoint:
    """One measured mean step. `drafted` is draft tokens per request and step (0 for the baseline)."""

    batch: float
    drafted: float
    step_time_s: float
    speculates: bool
    groups: tuple[StepGroup, ...] = DECODE_ONLY
    """Steps that only decode, and those that carry prompts."""
    limit: int = GRAPH_LIMIT
    """The server's largest captured CUDA graph, in tokens."""

    @property
    def verified(self) -> float:
        """Tokens that the target model computes per step: batch × (1 + drafted)."""
        return self.batch * (1 + self.drafted)


@dataclass(frozen=True)
class StepCost:
    """t = launch + max~(weights, per_token · pad(N)^exponent) + per_request · B, with N the tokens that a step computes
    (verified ones and prompts) and B its requests; where it speculates + drafting + drafting_per_request · B; above the
    graph limit max~ is at least `without_graph`.

    max~ is a smooth maximum: below the knee a step reads the weights whatever it computes (memory-bound), above it
    every token costs (compute-bound). pad(N) is the next captured CUDA graph. `exponent` below 1 says that larger
    matrix products run more efficiently. per_request holds what attention reads of the KV cache and what the host does.
    """

    launch_s: float
    weights_s: float
    per_token_s: float
    exponent: float
    per_request_s: float
    drafting_s: float
    drafting_per_request_s: float
    without_graph_s: float

    def compute_s(self, padded_tokens: float) -> float:
        """The matrix products' time if the weights were there at once."""
        return float(self.per_token_s * padded_tokens**self.exponent)

    @property
    def knee(self) -> float:
        """Tokens per step at which computing takes as long as reading the weights."""
        return float((self.weights_s / self.per_token_s) ** (1.0 / self.exponent)) if self.per_token_s > 0 else math.inf


class Steps:
    """The kinds of steps of some points as arrays, padded once: what a fit computes over and over."""

    def __init__(self, points: Sequence[StepPoint]) -> None:
        kinds = [(number, point, group) for number, point in enumerate(points) for group in point.groups]
        tokens = [(point.verified + group.prompt_tokens, point.limit) for _, point, group in kinds]
        self._count = len(points)
        self._point = np.array([number for number, _, _ in kinds])
        self._share = np.array([group.share for _, _, group in kinds])
        self._padded = np.array([padded(one, limit) for one, limit in tokens])
        self._beyond = np.array([one > limit for one, limit in tokens])
        self._requests = np.array([point.batch + group.prompts for _, point, group in kinds])
        self._speculates = np.array([float(point.speculates) for _, point, _ in kinds])

    @property
    def leave_graphs(self) -> bool:
        """Whether some of them are larger than every captured graph."""
        return bool(self._beyond.any())

    def mean_s(self, cost: StepCost) -> NDArray[np.float64]:
        """Seconds of the mean step of each point."""
        compute = cost.per_token_s * self._padded**cost.exponent
        larger, smaller = np.maximum(compute, cost.weights_s), np.minimum(compute, cost.weights_s)
        joined = larger * (1.0 + (smaller / larger) ** SHARPNESS) ** (1.0 / SHARPNESS)
        work = np.where(self._beyond, np.maximum(joined, cost.without_graph_s), joined)
        drafting = self._speculates * (cost.drafting_s + cost.drafting_per_request_s * self._requests)
        times = cost.launch_s + work + cost.per_request_s * self._requests + drafting
        sums = np.zeros(self._count)
        np.add.at(sums, self._point, self._share * times)
        return sums


@cache
def capture_sizes(limit: int) -> tuple[int, ...]:
    """vLLM's default CUDA graph sizes: 1, 2, 4, then by 8 below 256, then by 16 up to the limit."""
    sizes = (1, 2, 4, *range(8, 256, 8), *range(256, limit + 1, 16))
    return tuple(size for size in sizes if size <= limit)


def padded(tokens: float, limit: int) -> float:
    """Tokens that are computed: the next captured size, beyond the limit the tokens themselves; between two whole
    numbers (`tokens` is a mean) the line between theirs.
    """
    if tokens > limit:
        return tokens
    sizes = capture_sizes(limit)
    whole = max(1, math.floor(tokens))
    low, high = (sizes[bisect_left(sizes, n)] if n <= sizes[-1] else n for n in (whole, whole + 1))
    return low + max(0.0, tokens - whole) * (high - low)
