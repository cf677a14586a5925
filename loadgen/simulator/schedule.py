"""`num_speculative_tokens_per_batch_size` as vLLM 0.32 reads it (vllm-facts part 1)."""

from collections.abc import Sequence


def dense_schedule(ranges: Sequence[Sequence[int]], k_max: int, max_num_seqs: int) -> tuple[int, ...]:
    """K by number of scheduled requests, index 0 to `max_num_seqs`; index 0 repeats index 1.

    Ranges [first, last, K] are sorted; gaps and the tail carry the previous K; K is clamped to `k_max`.
    ValueError where vLLM's own check fails at engine start.
    """
    if not ranges:
        raise ValueError("num_speculative_tokens_per_batch_size is empty; give [[first, last, K], ...]")
    ordered = sorted((int(first), int(last), int(k)) for first, last, k in ranges)
    if ordered[0][0] != 1:
        raise ValueError(f"the first batch-size range must start at 1, not at {ordered[0][0]}")
    previous_end = 0
    for first, last, k in ordered:
        if first <= 0 or last < first:
            raise ValueError(f"batch-size range [{first}, {last}] must be positive and ascending")
        if k < 0:
            raise ValueError(f"K = {k} for batch sizes {first} to {last} must not be negative")
        if first <= previous_end:
            raise ValueError(f"batch-size ranges must not overlap, but {first} follows {previous_end}")
        previous_end = last
    dense: list[int] = []
    for n in range(1, max_num_seqs + 1):
        inside = next((k for first, last, k in ordered if first <= n <= last), None)
        dense.append(min(k_max, inside) if inside is not None else dense[-1])
    return (dense[0], *dense)
