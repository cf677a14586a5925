"""Request traces: when each request arrived and how long it was. JSONL of our own, Mooncake's JSONL, BurstGPT's CSV."""

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from loadgen.errors import UsageError
from loadgen.workloads.formats.common import Fault, json_lines, read_bytes, reason_of, refuse

_BURSTGPT_COLUMNS = {"Timestamp", "Request tokens", "Response tokens"}


@dataclass(frozen=True)
class Arrival:
    """One request of a trace; a length is None where the trace does not tell it."""

    at_s: float
    """Seconds since the first arrival."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    prompt: str | None = None


@dataclass(frozen=True)
class Trace:
    """A trace in the order of its arrivals, the first at 0 s."""

    name: str
    arrivals: tuple[Arrival, ...]
    warnings: tuple[str, ...] = ()

    @property
    def times_s(self) -> tuple[float, ...]:
        """The arrival times, as an open loop takes them."""
        return tuple(arrival.at_s for arrival in self.arrivals)

    @property
    def duration_s(self) -> float:
        """Seconds from the first to the last arrival."""
        return self.arrivals[-1].at_s


class MooncakeRecord(BaseModel):
    """A line of a Mooncake trace; `timestamp` is in milliseconds, `hash_ids` are not replayed."""

    model_config = ConfigDict(extra="ignore")
    timestamp: float = Field(ge=0)
    input_length: int = Field(ge=1)
    output_length: int = Field(ge=1)

    def arrival(self) -> Arrival:
        """The request."""
        return Arrival(self.timestamp / 1000, self.input_length, self.output_length)


class TraceRecord(BaseModel):
    """A line of our own: `at_s`, then `input_tokens` and `output_tokens`, or a `prompt`."""

    model_config = ConfigDict(extra="ignore")
    at_s: float = Field(ge=0, validation_alias=AliasChoices("at_s", "arrival_s"))
    input_tokens: int | None = Field(default=None, ge=1)
    output_tokens: int | None = Field(default=None, ge=1, validation_alias=AliasChoices("output_tokens", "max_tokens"))
    prompt: str | None = Field(default=None, min_length=1)

    def arrival(self) -> Arrival:
        """The request."""
        return Arrival(self.at_s, self.input_tokens, self.output_tokens, self.prompt)


class BurstGptRecord(BaseModel):
    """A row of BurstGPT; `Timestamp` is in seconds."""

    model_config = ConfigDict(extra="ignore")
    at_s: float = Field(ge=0, alias="Timestamp")
    input_tokens: int = Field(ge=0, alias="Request tokens")
    output_tokens: int = Field(ge=0, alias="Response tokens")


def read_trace(path: Path) -> Trace:
    """The file's arrivals; UsageError with line numbers and reasons if any line is faulty."""
    faults: list[Fault] = []
    raw = read_bytes(path)
    is_csv = path.suffix.lower() == ".csv"
    arrivals, warnings = _read_burstgpt(path, raw, faults) if is_csv else (_read_jsonl(raw, faults), ())
    refuse(path, faults)
    if not arrivals:
        raise UsageError(f"trace {path} holds no request; give a file with at least one")
    arrivals.sort(key=lambda arrival: arrival.at_s)
    start = arrivals[0].at_s
    shifted = tuple(Arrival(a.at_s - start, a.input_tokens, a.output_tokens, a.prompt) for a in arrivals)
    return Trace(path.stem, shifted, warnings)


def looks_like_trace(record: object) -> bool:
    """True for a line that tells an arrival."""
    return isinstance(record, dict) and bool({"at_s", "arrival_s"} & record.keys() or _is_mooncake(record))


def _is_mooncake(record: dict[str, object]) -> bool:
    return {"timestamp", "input_length"} <= record.keys()


def _read_jsonl(raw: bytes, faults: list[Fault]) -> list[Arrival]:
    arrivals: list[Arrival] = []
    for number, value in json_lines(raw, faults):
        try:
            if isinstance(value, dict) and _is_mooncake(value):
                arrivals.append(MooncakeRecord.model_validate(value).arrival())
            else:
                arrivals.append(TraceRecord.model_validate(value).arrival())
        except ValidationError as error:
            faults.append(Fault(f"line {number}", reason_of(error)))
    return arrivals


def _read_burstgpt(path: Path, raw: bytes, faults: list[Fault]) -> tuple[list[Arrival], tuple[str, ...]]:
    """Rows without response tokens are failed requests of the recorded service: left out, and counted."""
    try:
        rows = csv.DictReader(io.StringIO(raw.decode("utf-8"), newline=""))
    except UnicodeDecodeError as error:
        raise UsageError(f"trace {path} is not UTF-8 ({error.reason}); save it as UTF-8") from error
    if not set(rows.fieldnames or ()) >= _BURSTGPT_COLUMNS:
        raise UsageError(f"trace {path} lacks a column of {', '.join(sorted(_BURSTGPT_COLUMNS))}; give BurstGPT's CSV")
    arrivals: list[Arrival] = []
    failed = 0
    for row in rows:
        try:
            record = BurstGptRecord.model_validate(row)
        except ValidationError as error:
            faults.append(Fault(f"line {rows.line_num}", reason_of(error)))
            continue
        if record.input_tokens and record.output_tokens:
            arrivals.append(Arrival(record.at_s, record.input_tokens, record.output_tokens))
        else:
            failed += 1
    told = f"{failed} rows of {path.name} have no request or response tokens (failed requests) and were left out"
    return arrivals, (told,) if failed else ()
