"""What of a request lies inside a window.

A request's N tokens are spread over its token-bearing events: as the server told them per event where it did; else the
first event holds one token (a prefill gives one) and the others share the rest evenly; with fewer tokens than events
all share evenly. An event counts with its tokens if it arrived in [open, close). A request that showed no event counts
its tokens at its end.
"""

from bisect import bisect_left
from collections.abc import Iterable

from loadgen.load.record import Outcome, RequestRecord


def tokens_in_window(record: RequestRecord, open_s: float, close_s: float) -> float:
    """Output tokens of one request that arrived in [open, close); 0.0 for any outcome but OK (cases C13, C42)."""
    if record.outcome is not Outcome.OK:
        return 0.0
    times = record.chunk_times_s
    if not times:
        return float(record.output_tokens) if open_s <= record.end_s < close_s else 0.0
    first, last = bisect_left(times, open_s), bisect_left(times, close_s)
    if first >= last:
        return 0.0
    if last - first == len(times):
        return float(record.output_tokens)
    return sum(tokens_per_event(record)[first:last])


def tokens_per_event(record: RequestRecord) -> list[float]:
    """How the output tokens are spread over the token-bearing events; sums to `output_tokens`."""
    events, tokens = len(record.chunk_times_s), record.output_tokens
    if not events:
        return []
    told = record.chunk_tokens
    if told is not None and sum(told) > 0:
        scale = tokens / sum(told)
        return [count * scale for count in told]
    if tokens <= events or events == 1:
        return [tokens / events] * events
    return [1.0] + [(tokens - 1) / (events - 1)] * (events - 1)


def seconds_in_window(record: RequestRecord, open_s: float, close_s: float) -> float:
    """Seconds that the request was in flight inside the window, whatever its outcome."""
    return max(0.0, min(record.end_s, close_s) - max(record.start_s, open_s))


def in_flight_mean(records: Iterable[RequestRecord], open_s: float, close_s: float) -> float:
    """Requests in flight, averaged over the window: sum of their seconds in it / its length (case C45)."""
    if close_s <= open_s:
        return 0.0
    return sum(seconds_in_window(r, open_s, close_s) for r in records) / (close_s - open_s)
