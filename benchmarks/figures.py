"""From a server's log and a client's own report to figures. Pure."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.clients.base import Reading
from benchmarks.mock import Truth
from benchmarks.scenarios import Scenario


@dataclass(frozen=True)
class Cost:
    """What the process tree of one run cost."""

    cpu_s: float
    wall_s: float
    peak_rss_mb: float


@dataclass(frozen=True)
class Figures:
    """One run of one client. None: it cannot be known in this way."""

    events: int
    load_s: float
    """From the first request's arrival at the server to the last event's send."""
    cpu_s_per_million: float
    core_share: float
    """CPU seconds of the load per second of it."""
    events_per_s: float
    of_ideal: float | None
    ttft_error_mean_ms: float | None
    ttft_error_p99_ms: float | None
    ttft_n: int
    """Requests that were matched one by one; 0: the client's own mean and p99 were taken."""
    beside_load_cpu_s: float | None
    """Start, warm-up, analysis and report of a whole command."""
    peak_rss_mb: float
    blocked: int
    """Server sends that the client's socket did not take at once."""


class BrokenRunError(Exception):
    """The run is no measurement; the text says why."""


def quantile(values: Sequence[float], share: float) -> float:
    """The nearest rank above; raises ValueError for no values."""
    if not values:
        raise ValueError("a quantile of nothing")
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def load_rows(truths: Sequence[Truth], scenario: Scenario) -> list[Truth]:
    """The scenario's requests: the last ones of that many, because a warm-up comes before. Raises BrokenRunError if
    they are not all whole.
    """
    rows = list(truths[-scenario.requests :])
    if len(rows) < scenario.requests:
        raise BrokenRunError(f"the server saw {len(rows)} of {scenario.requests} requests")
    broken = sum(row.aborted or row.tokens != scenario.max_tokens for row in rows)
    if broken:
        raise BrokenRunError(f"{broken} of {len(rows)} streams were broken off or had another length")
    return rows


def ttft_errors_s(rows: Sequence[Truth], reading: Reading) -> list[float]:
    """Per request: the client's TTFT minus the server's (first event's send - request read). Raises BrokenRunError if
    a request has no match.
    """
    truth = {row.tag if reading.key == "tag" else row.x_request_id: row.ttft_s for row in rows}
    missing = [key for key in truth if reading.ttft_s.get(key) is None]
    if missing:
        raise BrokenRunError(f"the client reported no TTFT for {len(missing)} of {len(truth)} requests")
    return [reading.ttft_s[key] - true for key, true in truth.items()]


def _ttft(rows: Sequence[Truth], reading: Reading) -> tuple[float | None, float | None, int]:
    """(mean, p99, n) of the TTFT error in ms."""
    if reading.ttft_s:
        errors = ttft_errors_s(rows, reading)
        return statistics.fmean(errors) * 1e3, quantile(errors, 0.99) * 1e3, len(errors)
    if reading.reported_ttft_s is None:
        return None, None, 0
    true = [row.ttft_s for row in rows]
    mean, p99 = reading.reported_ttft_s
    return (mean - statistics.fmean(true)) * 1e3, (p99 - quantile(true, 0.99)) * 1e3, 0


def figures(
    scenario: Scenario, truths: Sequence[Truth], cost: Cost, reading: Reading, short: tuple[Scenario, Cost] | None
) -> Figures:
    """The figures of one run. `short` is the same whole command with the short load: the difference of both costs over
    the difference of both event counts is the cost per event, what then remains is the cost beside the load.
    """
    rows = load_rows(truths, scenario)
    load_s = max(row.last_s for row in rows) - min(row.received_s for row in rows)
    beside = None
    if reading.cpu_s is not None:
        cpu_s = reading.cpu_s
    elif short is not None:
        per_event = (cost.cpu_s - short[1].cpu_s) / (scenario.events - short[0].events)
        cpu_s = per_event * scenario.events
        beside = cost.cpu_s - cpu_s
    else:
        raise BrokenRunError("a whole command needs its short run")
    mean, p99, n = _ttft(rows, reading)
    return Figures(
        events=scenario.events,
        load_s=load_s,
        cpu_s_per_million=cpu_s / scenario.events * 1e6,
        core_share=cpu_s / load_s,
        events_per_s=scenario.events / load_s,
        of_ideal=scenario.ideal_s / load_s if scenario.ideal_s else None,
        ttft_error_mean_ms=mean,
        ttft_error_p99_ms=p99,
        ttft_n=n,
        beside_load_cpu_s=beside,
        peak_rss_mb=cost.peak_rss_mb,
        blocked=sum(row.blocked for row in rows),
    )


@dataclass(frozen=True)
class Spread:
    """A figure over the rounds."""

    median: float
    least: float
    most: float
    n: int


def spread(values: Sequence[float | None]) -> Spread | None:
    """Median and range of what is known; None if nothing is."""
    known = [value for value in values if value is not None]
    return Spread(statistics.median(known), min(known), max(known), len(known)) if known else None


def ratios(mine: Sequence[float | None], reference: Sequence[float | None]) -> Spread | None:
    """Ratios within the same round, so that a slow phase of the machine hits both."""
    pairs = zip(mine, reference, strict=True)
    return spread([a / b for a, b in pairs if a is not None and b])


def differences(mine: Sequence[float | None], reference: Sequence[float | None]) -> Spread | None:
    """Differences within the same round."""
    pairs = zip(mine, reference, strict=True)
    return spread([a - b for a, b in pairs if a is not None and b is not None])
