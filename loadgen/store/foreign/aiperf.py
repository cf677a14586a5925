"""AIPerf's `profile_export_aiperf.json` (0.13, schema 1.4): one level a file."""

from pathlib import Path
from typing import Any

from pydantic import Field

from loadgen.errors import UsageError
from loadgen.load.summary import Distribution
from loadgen.store.foreign.model import NONE, ForeignCell, Lenient, checked, in_flight, scaled

TOOL = "AIPerf"
UNITS = {"ms": 1e-3, "sec": 1.0, "s": 1.0, "us": 1e-6, "ns": 1e-9}


class Result(Lenient):
    """One metric."""

    unit: str
    avg: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    max: float | None = None
    count: int | None = None


class Phase(Lenient):
    """A part of the run."""

    name: str = ""
    kind: str = ""
    concurrency: int | None = None


class Model(Lenient):
    """A model under test."""

    name: str


class Models(Lenient):
    """All of them."""

    items: list[Model] = Field(default_factory=list)


class InputConfig(Lenient):
    """What was asked."""

    models: Models = Field(default_factory=Models)
    phases: list[Phase] = Field(default_factory=list)


class Export(Lenient):
    """The keys that we read."""

    aiperf_version: str = "unknown"
    input_config: InputConfig
    is_complete: bool | None = None
    was_cancelled: bool | None = None
    incomplete_reason: str | None = None
    start_time: str = ""
    request_throughput: Result
    output_token_throughput: Result
    request_latency: Result
    request_count: Result
    error_request_count: Result | None = None
    benchmark_duration: Result
    time_to_first_token: Result | None = None
    inter_token_latency: Result | None = None
    output_sequence_length: Result | None = None
    input_sequence_length: Result | None = None
    effective_concurrency: Result | None = None
    total_spec_decode_steps: Result | None = None
    total_draft_tokens: Result | None = None
    total_accepted_draft_tokens: Result | None = None


def matches(data: object) -> bool:
    """True if this is such an export."""
    return isinstance(data, dict) and "aiperf_version" in data


def read(path: Path, data: Any) -> list[ForeignCell]:
    """The file's one cell. UsageError for a run without a fixed concurrency, or one that was cut short."""
    found = checked(Export, data, path, TOOL)
    if found.was_cancelled or found.is_complete is False:
        why = found.incomplete_reason or "cancelled"
        raise UsageError(f"{path} is of a run that did not finish ({why}); run it again.")
    phases = [phase for phase in found.input_config.phases if "warm" not in f"{phase.name}{phase.kind}".lower()]
    levels = {phase.concurrency for phase in phases}
    level = levels.pop() if len(levels) == 1 else None
    if not level:
        raise UsageError(f"{path} has no fixed concurrency; run AIPerf with --concurrency C once per level.")
    rate = found.request_throughput.avg or 0.0
    latency = _seconds(found.request_latency)
    reached = found.effective_concurrency.avg if found.effective_concurrency else None
    return [
        ForeignCell(
            tool=f"{TOOL} {found.aiperf_version}",
            file=path.name,
            level=level,
            model=next((model.name for model in found.input_config.models.items), None),
            started_at=found.start_time,
            window_s=found.benchmark_duration.avg or 0.0,
            output_tokens_per_s=found.output_token_throughput.avg or 0.0,
            requests_per_s=rate,
            ok=int(found.request_count.avg or 0),
            failed=int(found.error_request_count.avg or 0) if found.error_request_count else 0,
            ttft_s=_seconds(found.time_to_first_token),
            # (E2E − TTFT) / (n − 1): AIPerf's name for our TPOT
            tpot_s=_seconds(found.inter_token_latency),
            e2e_s=latency,
            output_tokens=_tokens(found.output_sequence_length),
            prompt_tokens=_tokens(found.input_sequence_length),
            drafts=_total(found.total_spec_decode_steps),
            draft_tokens=_total(found.total_draft_tokens),
            accepted_tokens=_total(found.total_accepted_draft_tokens),
            in_flight_mean=reached if reached is not None else in_flight(rate, latency.mean),
        )
    ]


def _seconds(result: Result | None) -> Distribution:
    if result is None or result.avg is None:
        return NONE
    if result.unit not in UNITS:
        raise UsageError(f"An AIPerf export has times in {result.unit!r}; known are {', '.join(UNITS)}.")
    return _scaled(result, UNITS[result.unit])


def _total(result: Result | None) -> float | None:
    return result.avg if result is not None else None


def _tokens(result: Result | None) -> Distribution:
    return NONE if result is None else _scaled(result, 1.0)


def _scaled(result: Result, factor: float) -> Distribution:
    values = {"mean": result.avg, "p50": result.p50, "p90": result.p90, "p99": result.p99, "max": result.max}
    return scaled(values, result.count or 0, factor)
