"""What an engine's steps were made of: those that only decode, those that carry prompts (docs/method.md, part 6)."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from loadgen.analysis.acceptance import first_tokens
from loadgen.metrics.model import CounterDelta

_UNLIKE_PROMPTS = 1.08
"""Prompts of one cell differ by a few per cent: one that is so much longer still counts as one."""


@dataclass(frozen=True)
class StepGroup:
    """Steps of one kind."""

    share: float
    """Of all steps."""
    prompts: float
    """Requests that each of them carries a prompt of; 0: it only decodes."""
    prompt_tokens: float
    """Prompt tokens that each of them computes (what the prefix cache gave is not computed)."""


DECODE_ONLY = (StepGroup(1.0, 0.0, 0.0),)


def step_groups(deltas: Iterable[CounterDelta], level: int) -> tuple[StepGroup, ...]:
    """The kinds of steps of some windows of one profile at one level, decode-only steps first; shares add up to 1.

    `vllm:iteration_tokens_total` counts prompt tokens computed and tokens generated in each step. A step that only
    decodes cannot generate more than level × (1 + K), so whatever lies above carries prompts; how many of them follows
    from the bucket's bounds and the mean prompt, and from the number of requests that got a first token. Where no
    bucket lies above (short prompts, or a server without buckets) prompts are taken as spread by chance over the steps.
    """
    windows = [
        delta for delta in deltas if delta.iteration_tokens is not None and delta.inter_token_latency is not None
    ]
    steps = math.fsum(delta.iteration_tokens.count for delta in windows if delta.iteration_tokens)
    firsts = math.fsum(first_tokens(delta) for delta in windows)
    made = math.fsum(delta.generation_tokens or 0.0 for delta in windows)
    computed = math.fsum(delta.iteration_tokens.sum for delta in windows if delta.iteration_tokens) - made
    if steps <= 0 or firsts <= 0 or computed < firsts:
        return DECODE_ONLY
    most_decoded = level * (1.0 + max(_drafted(delta) for delta in windows))
    carrying = [(low, high, count) for (low, high), count in sorted(_buckets(windows).items()) if low >= most_decoded]
    if not carrying:
        return by_chance(steps, firsts, computed)
    return _by_bucket(carrying, steps, firsts, computed, made / steps)


def by_chance(steps: float, firsts: float, computed: float) -> tuple[StepGroup, ...]:
    """The kinds if each prompt falls into any step alike (Poisson): a step carries some with 1 − exp(−mean)."""
    if firsts <= 0 or computed <= 0:
        return DECODE_ONLY
    share = -math.expm1(-firsts / steps)
    return (
        StepGroup(1.0 - share, 0.0, 0.0),
        StepGroup(share, firsts / steps / share, computed / steps / share),
    )


def _drafted(delta: CounterDelta) -> float:
    """Draft tokens per draft, which is K where drafts are of one length."""
    return (delta.draft_tokens or 0.0) / delta.drafts if delta.drafts else 0.0


def _buckets(windows: Sequence[CounterDelta]) -> dict[tuple[float, float], float]:
    """Steps by (more tokens than, up to)."""
    found: dict[tuple[float, float], float] = defaultdict(float)
    for delta in windows:
        low = before = 0.0
        for high, until in delta.iteration_tokens.buckets if delta.iteration_tokens else ():
            found[(low, high)] += until - before
            low, before = high, until
    return {bounds: count for bounds, count in found.items() if count > 0}


def _by_bucket(
    carrying: Sequence[tuple[float, float, float]], steps: float, firsts: float, computed: float, generated: float
) -> tuple[StepGroup, ...]:
    """Each bucket's fewest and most prompts, and the one share between them that gives all prompts their step."""
    prompt = computed / firsts
    spans = []
    for low, high, count in carrying:
        least = max(1, math.ceil((low + 1 - generated) / (prompt * _UNLIKE_PROMPTS)))
        most = max(least, math.floor((high - generated) / prompt)) if math.isfinite(high) else least
        spans.append((count, least, most))
    fewest = math.fsum(count * least for count, least, _ in spans)
    room = math.fsum(count * (most - least) for count, least, most in spans)
    between = min(1.0, max(0.0, (firsts - fewest) / room)) if room > 0 else 0.0
    placed = [(count, least + between * (most - least)) for count, least, most in spans]
    tokens = computed / math.fsum(count * prompts for count, prompts in placed)
    carried = [StepGroup(count / steps, prompts, prompts * tokens) for count, prompts in placed]
    share = math.fsum(group.share for group in carried)
    return (StepGroup(max(0.0, 1.0 - share), 0.0, 0.0), *carried)
