"""Server counters pooled over the repeats of a level: sums first, ratios after (case C61)."""

import math
from collections.abc import Iterable

from loadgen.metrics.model import CounterDelta, HistogramDelta


def pool(deltas: Iterable[CounterDelta | None]) -> CounterDelta | None:
    """One delta with all counts added; None without any delta. A figure that one of them lacks is None, never a part.

    Histograms keep count and sum alone. Ratios are then the properties of `CounterDelta`.
    """
    known = [delta for delta in deltas if delta is not None]
    if not known:
        return None
    return CounterDelta(
        duration_s=math.fsum(delta.duration_s for delta in known),
        generation_tokens=_sum([delta.generation_tokens for delta in known]),
        prompt_tokens=_sum([delta.prompt_tokens for delta in known]),
        drafts=_sum([delta.drafts for delta in known]),
        draft_tokens=_sum([delta.draft_tokens for delta in known]),
        accepted_tokens=_sum([delta.accepted_tokens for delta in known]),
        accepted_per_position=_positions([delta.accepted_per_position for delta in known]),
        preemptions=_sum([delta.preemptions for delta in known]),
        prefix_cache_queries=_sum([delta.prefix_cache_queries for delta in known]),
        prefix_cache_hits=_sum([delta.prefix_cache_hits for delta in known]),
        inter_token_latency=_merge([delta.inter_token_latency for delta in known]),
        iteration_tokens=_merge([delta.iteration_tokens for delta in known]),
        time_to_first_token=_merge([delta.time_to_first_token for delta in known]),
        time_per_output_token=_merge([delta.time_per_output_token for delta in known]),
        e2e_latency=_merge([delta.e2e_latency for delta in known]),
        queue_time=_merge([delta.queue_time for delta in known]),
        process_cpu_s=_sum([delta.process_cpu_s for delta in known]),
        reset_detected=any(delta.reset_detected for delta in known),
    )


def step_time_s(delta: CounterDelta | None) -> float | None:
    """Seconds per engine step, prefill steps included; None without counted steps."""
    if delta is None or delta.iteration_tokens is None or delta.iteration_tokens.count <= 0 or delta.duration_s <= 0:
        return None
    return delta.duration_s / delta.iteration_tokens.count


def first_tokens(delta: CounterDelta) -> float:
    """Requests that got their first token in the window; 0 where the server does not say."""
    return delta.time_to_first_token.count if delta.time_to_first_token else 0.0


def _sum(values: list[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return math.fsum(present) if len(present) == len(values) else None


def _merge(histograms: list[HistogramDelta | None]) -> HistogramDelta | None:
    present = [histogram for histogram in histograms if histogram is not None]
    if len(present) < len(histograms):
        return None
    return HistogramDelta(math.fsum(h.count for h in present), math.fsum(h.sum for h in present))


def _positions(rows: list[tuple[float, ...]]) -> tuple[float, ...]:
    """Element-wise sum; a position that a row lacks counts 0 (case C75)."""
    width = max(len(row) for row in rows)
    return tuple(math.fsum(row[i] for row in rows if i < len(row)) for i in range(width))
