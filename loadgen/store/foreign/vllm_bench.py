"""`vllm bench serve --save-result` and `vllm bench sweep serve` (vLLM 0.32): one object, or a list of runs."""

from pathlib import Path
from typing import Any

from loadgen.errors import UsageError
from loadgen.load.summary import Distribution, distribution
from loadgen.store.foreign.model import NONE, ForeignCell, Lenient, checked, in_flight

TOOL = "vllm bench serve"


class VllmResult(Lenient):
    """The keys of a result that we read. Lists stand there with --save-detailed alone."""

    date: str = ""
    model_id: str | None = None
    max_concurrency: int | None = None
    request_rate: float | str | None = None
    duration: float
    completed: int
    failed: int = 0
    request_throughput: float
    output_throughput: float
    total_input_tokens: int | None = None
    total_output_tokens: int | None = None
    mean_ttft_ms: float | None = None
    median_ttft_ms: float | None = None
    p90_ttft_ms: float | None = None
    p99_ttft_ms: float | None = None
    mean_tpot_ms: float | None = None
    median_tpot_ms: float | None = None
    p90_tpot_ms: float | None = None
    p99_tpot_ms: float | None = None
    mean_e2el_ms: float | None = None
    median_e2el_ms: float | None = None
    p90_e2el_ms: float | None = None
    p99_e2el_ms: float | None = None
    input_lens: list[int] | None = None
    output_lens: list[int] | None = None
    spec_decode_num_drafts: float | None = None
    spec_decode_draft_tokens: float | None = None
    spec_decode_accepted_tokens: float | None = None
    spec_decode_per_position_acceptance_rates: list[float] | None = None


def matches(data: object) -> bool:
    """True if this is such a result."""
    first = data[0] if isinstance(data, list) and data else data
    return isinstance(first, dict) and "request_throughput" in first and "output_throughput" in first


def read(path: Path, data: Any) -> list[ForeignCell]:
    """One cell per run in the file. UsageError for an open-loop result: it has no level."""
    runs = data if isinstance(data, list) else [data]
    return [_cell(path, checked(VllmResult, run, path, TOOL)) for run in runs]


def _cell(path: Path, found: VllmResult) -> ForeignCell:
    if found.max_concurrency is None:
        raise UsageError(f"{path} has no max_concurrency: run `vllm bench serve --max-concurrency C` once per level.")
    n, warnings = found.completed, []
    if found.request_rate not in (None, "inf"):
        warnings.append(f"starts were limited to {found.request_rate} requests/s, so the level may not be reached")
    e2e = _times(found, "e2el", n)
    mean_e2e = e2e.mean
    if mean_e2e is None and found.mean_ttft_ms is not None and found.mean_tpot_ms is not None and n:
        # E2E is not among vLLM's default metrics: mean TTFT + mean TPOT · (mean length − 1)
        mean_e2e = (found.mean_ttft_ms + found.mean_tpot_ms * ((found.total_output_tokens or n) / n - 1)) / 1000
    drafts = found.spec_decode_num_drafts
    shares = found.spec_decode_per_position_acceptance_rates or []
    return ForeignCell(
        tool=TOOL,
        file=path.name,
        level=found.max_concurrency,
        model=found.model_id,
        started_at=found.date,
        window_s=found.duration,
        output_tokens_per_s=found.output_throughput,
        requests_per_s=found.request_throughput,
        ok=n,
        failed=found.failed,
        ttft_s=_times(found, "ttft", n),
        tpot_s=_times(found, "tpot", n),
        e2e_s=e2e,
        output_tokens=_lengths(found.output_lens, found.total_output_tokens, n),
        prompt_tokens=_lengths(found.input_lens, found.total_input_tokens, n),
        in_flight_mean=in_flight(found.request_throughput, mean_e2e),
        drafts=drafts,
        draft_tokens=found.spec_decode_draft_tokens,
        accepted_tokens=found.spec_decode_accepted_tokens,
        accepted_per_position=tuple(share * drafts for share in shares) if drafts else (),
        warnings=tuple(warnings),
    )


def _times(found: VllmResult, metric: str, n: int) -> Distribution:
    values = [getattr(found, f"{name}_{metric}_ms") for name in ("mean", "median", "p90", "p99")]
    if values[0] is None:
        return NONE
    mean, p50, p90, p99 = (None if value is None else value / 1000 for value in values)
    return Distribution(n, mean, p50, p90, p99)


def _lengths(lengths: list[int] | None, total: int | None, n: int) -> Distribution:
    if lengths:
        return distribution([float(length) for length in lengths])
    return Distribution(n, total / n) if total is not None and n else NONE
