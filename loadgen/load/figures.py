"""The published figures of one load run: what `loadgen load --json` and a cell's line in `cells.jsonl` share."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any

from loadgen.load.record import Outcome, RequestRecord
from loadgen.load.shape import LoadResult
from loadgen.load.summary import distribution
from loadgen.load.window import in_flight_mean


def load_figures(result: LoadResult) -> dict[str, Any]:
    """The figures by their published names, JSON-ready, non-finite numbers as None. A figure counts where its event
    falls into the window: TTFT by the first token, TPOT and E2E by the last, a gap by its later event. So neither
    ramp-up nor drain colours them (cases C48, C49).
    """
    open_s, close_s = result.window_open_s, result.window_close_s
    good = [r for r in result.records if r.outcome is Outcome.OK]
    begun = [r for r in good if r.first_token_s is not None and open_s <= r.first_token_s < close_s]
    ended = [r for r in good if r.last_token_s is not None and open_s <= r.last_token_s < close_s]
    health = result.health
    return {
        "ttft_s": asdict(distribution(r.ttft_s for r in begun)),
        "tpot_s": asdict(distribution(r.tpot_s for r in ended)),
        "e2e_s": asdict(distribution(r.e2e_s for r in ended)),
        "chunk_gap_s": asdict(distribution(_gaps(good, open_s, close_s))),
        "output_tokens_per_s": result.output_tokens_per_s,
        "outcomes": dict(result.outcomes),
        "client": {
            "loop_lag_p99_s": health.loop_lag_p99_s,
            "cpu_share": health.cpu_share,
            "in_flight_mean": health.in_flight_mean,
        },
    }


def whole_run(result: LoadResult) -> LoadResult:
    """The same run with a window from its first send to its last end: for runs too short for a steady part. The result
    is unchanged if nothing was sent.
    """
    if not result.records:
        return result
    open_s = min(r.start_s for r in result.records)
    # one step beyond: windows exclude their close
    close_s = math.nextafter(max(r.end_s for r in result.records), math.inf)
    good = [r for r in result.records if r.outcome is Outcome.OK]
    return replace(
        result,
        window_open_s=open_s,
        window_close_s=close_s,
        output_tokens_in_window=float(sum(r.output_tokens for r in good)),
        requests_ended_in_window=len(good),
        health=replace(result.health, in_flight_mean=in_flight_mean(result.records, open_s, close_s)),
    )


def length_drift(baseline: Sequence[RequestRecord], other: Sequence[RequestRecord]) -> float | None:
    """Relative difference of the mean output length of OK requests, other against baseline; None without both.
    Above 5 % either way the two arms did different work (case C31).
    """
    means = [_mean(r.output_tokens for r in arm if r.outcome is Outcome.OK) for arm in (baseline, other)]
    return means[1] / means[0] - 1.0 if means[0] and means[1] is not None else None


def _mean(values: Iterable[int]) -> float | None:
    data = list(values)
    return sum(data) / len(data) if data else None


def _gaps(records: Iterable[RequestRecord], open_s: float, close_s: float) -> Iterable[float]:
    for record in records:
        for before, after in pairwise(record.chunk_times_s):
            if open_s <= after < close_s:
                yield after - before
