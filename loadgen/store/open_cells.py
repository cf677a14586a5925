"""RUN/plan/open.jsonl: open-loop rates measured for a plan, one a line, each with its requests' times."""

import math
from dataclasses import dataclass
from pathlib import Path

from loadgen.load.record import Outcome, RequestRecord
from loadgen.store.jsonl import Appender, read
from loadgen.store.model import Condition


@dataclass(frozen=True)
class OpenCell:
    """One profile at one rate. Times in seconds from the *scheduled* start; None where a request failed."""

    profile: str
    condition: Condition
    rate_per_s: float
    seed: int
    started_at: str
    seconds: float
    """From the first scheduled start to the last request's end."""
    in_flight_mean: float
    loop_lag_p99_s: float
    output_tokens: int
    ttft_s: tuple[float | None, ...]
    tpot_s: tuple[float | None, ...]
    e2e_s: tuple[float | None, ...]


def open_cell(
    profile: str,
    condition: Condition,
    rate_per_s: float,
    *,
    seed: int,
    started_at: str,
    records: tuple[RequestRecord, ...],
    in_flight_mean: float,
    loop_lag_p99_s: float,
) -> OpenCell:
    """The line for these records; cancelled ones are left out."""
    kept = [record for record in records if record.outcome is not Outcome.CANCELLED]
    good = [record if record.outcome is Outcome.OK else None for record in kept]
    first = min((r.scheduled_s for r in kept if r.scheduled_s is not None), default=0.0)
    return OpenCell(
        profile=profile,
        condition=condition,
        rate_per_s=rate_per_s,
        seed=seed,
        started_at=started_at,
        seconds=max((r.end_s for r in kept), default=first) - first,
        in_flight_mean=in_flight_mean,
        loop_lag_p99_s=loop_lag_p99_s,
        output_tokens=sum(r.output_tokens for r in good if r),
        ttft_s=tuple(_rounded(r.ttft_from_schedule_s) if r else None for r in good),
        tpot_s=tuple(_rounded(r.tpot_s) if r else None for r in good),
        e2e_s=tuple(_rounded(r.e2e_from_schedule_s) if r else None for r in good),
    )


def append_open_cell(run: Path, cell: OpenCell) -> None:
    """Writes one line."""
    (run / "plan").mkdir(exist_ok=True)
    file = Appender(_path(run))
    try:
        file.append(cell)
        file.sync()
    finally:
        file.close()


def open_cells(run: Path) -> tuple[OpenCell, ...]:
    """The measured rates; of two measurements of one, the later. UsageError if a line cannot be read."""
    latest = {(cell.profile, cell.condition, cell.rate_per_s): cell for cell in read(_path(run), OpenCell)}
    return tuple(latest[key] for key in sorted(latest))


def _path(run: Path) -> Path:
    return run / "plan" / "open.jsonl"


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 6)
