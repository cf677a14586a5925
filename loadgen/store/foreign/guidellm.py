"""GuideLLM's JSON report (0.8, report version 2): a benchmark per level."""

from pathlib import Path
from typing import Any

from loadgen.errors import UsageError
from loadgen.load.summary import Distribution
from loadgen.store.foreign.model import NONE, ForeignCell, Lenient, checked, scaled

TOOL = "GuideLLM"


class Percentiles(Lenient):
    """Of a distribution."""

    p50: float
    p90: float
    p99: float


class Summary(Lenient):
    """A distribution as GuideLLM gives it."""

    mean: float
    max: float
    count: int
    percentiles: Percentiles


class Metric(Lenient):
    """A metric of the requests that succeeded."""

    successful: Summary | None = None


class Totals(Lenient):
    """Requests by how they ended."""

    successful: int
    errored: int = 0
    incomplete: int = 0


class Metrics(Lenient):
    """The metrics that we read."""

    request_totals: Totals
    requests_per_second: Metric
    request_concurrency: Metric
    request_latency: Metric
    prompt_token_count: Metric
    output_token_count: Metric
    time_to_first_token_ms: Metric
    inter_token_latency_ms: Metric
    output_tokens_per_second: Metric


class Strategy(Lenient):
    """How load was made."""

    type_: str
    streams: int | None = None


class Backend(Lenient):
    """What was asked."""

    model: str | None = None


class Config(Lenient):
    """A benchmark's settings."""

    strategy: Strategy
    backend: Backend = Backend()


class Benchmark(Lenient):
    """One level."""

    config: Config
    metrics: Metrics
    start_time: float
    duration: float
    warmup_duration: float = 0.0
    cooldown_duration: float = 0.0


class Metadata(Lenient):
    """Of the report."""

    guidellm_version: str = "unknown"


class Report(Lenient):
    """The whole file."""

    metadata: Metadata
    benchmarks: list[Benchmark]


def matches(data: object) -> bool:
    """True if this is such a report."""
    return isinstance(data, dict) and "benchmarks" in data and "guidellm_version" in data.get("metadata", {})


def read(path: Path, data: Any) -> list[ForeignCell]:
    """One cell per benchmark. UsageError for a strategy without a fixed number of streams."""
    report = checked(Report, data, path, TOOL)
    return [_cell(path, one, report.metadata.guidellm_version) for one in report.benchmarks]


def _cell(path: Path, found: Benchmark, version: str) -> ForeignCell:
    strategy, metrics = found.config.strategy, found.metrics
    if strategy.type_ == "synchronous":
        level = 1
    elif strategy.type_ == "concurrent" and strategy.streams:
        level = strategy.streams
    else:
        raise UsageError(
            f"{path} has a benchmark of the kind {strategy.type_}, which has no level; run GuideLLM with "
            "--profile kind=concurrent,streams=C once per level."
        )
    totals, concurrency = metrics.request_totals, metrics.request_concurrency.successful
    return ForeignCell(
        tool=f"{TOOL} {version}",
        file=path.name,
        level=level,
        model=found.config.backend.model,
        started_at=f"{found.start_time:.3f}",
        window_s=found.duration,
        output_tokens_per_s=_mean(metrics.output_tokens_per_second, path),
        requests_per_s=_mean(metrics.requests_per_second, path),
        ok=totals.successful,
        failed=totals.errored,
        ttft_s=_seconds(metrics.time_to_first_token_ms, 1e-3),
        # its time_per_output_token is E2E / n; our TPOT, (last − first) / (n − 1), is its inter_token_latency
        tpot_s=_seconds(metrics.inter_token_latency_ms, 1e-3),
        e2e_s=_seconds(metrics.request_latency, 1.0),
        output_tokens=_seconds(metrics.output_token_count, 1.0),
        prompt_tokens=_seconds(metrics.prompt_token_count, 1.0),
        in_flight_mean=concurrency.mean if concurrency else None,
    )


def _mean(metric: Metric, path: Path) -> float:
    if metric.successful is None:
        raise UsageError(f"{path} has a benchmark without a request that succeeded; leave that level out.")
    return metric.successful.mean


def _seconds(metric: Metric, factor: float) -> Distribution:
    found = metric.successful
    if found is None or found.count == 0:
        return NONE
    shares = found.percentiles
    values = {"mean": found.mean, "p50": shares.p50, "p90": shares.p90, "p99": shares.p99, "max": found.max}
    return scaled(values, found.count, factor)
