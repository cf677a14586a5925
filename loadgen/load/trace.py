"""Request traces: when requests came, and how long they were."""

import csv
import io
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadgen.errors import UsageError


@dataclass(frozen=True)
class TraceEntry:
    """One request of a trace. Lengths in tokens, None where the trace does not tell."""

    arrival_s: float
    input_tokens: int | None = None
    output_tokens: int | None = None


def read_trace(path: Path) -> tuple[TraceEntry, ...]:
    """The entries by arrival. Reads JSONL with `arrival_s` (seconds), Mooncake's JSONL (`timestamp` in milliseconds,
    `input_length`, `output_length`) and BurstGPT's CSV (`Timestamp` in seconds, `Request tokens`, `Response tokens`).
    UsageError names the line and the reason of the first fault.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The trace {path} cannot be read ({error}): give a JSONL or CSV file in UTF-8.") from None
    rows = _csv_rows(text) if path.suffix == ".csv" else _json_rows(path, text)
    entries = [_entry(path, number, row) for number, row in rows]
    if not entries:
        raise UsageError(f"The trace {path} holds no request: give at least one line.")
    return tuple(sorted(entries, key=lambda entry: entry.arrival_s))


def _json_rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    # split on LF alone: a JSON string may hold U+2028 (case C55)
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise UsageError(f"{path}, line {number} is not JSON: {error}.") from None
        if not isinstance(row, dict):
            raise UsageError(f"{path}, line {number} is not a JSON object.")
        yield number, row


def _csv_rows(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.DictReader(io.StringIO(text))
    for row in reader:
        yield reader.line_num, row


def _entry(path: Path, number: int, row: dict[str, Any]) -> TraceEntry:
    try:
        if "arrival_s" in row:
            return TraceEntry(
                _seconds(row["arrival_s"]), _count(row.get("input_tokens")), _count(row.get("output_tokens"))
            )
        if "timestamp" in row:
            return TraceEntry(
                _seconds(row["timestamp"]) / 1000.0, _count(row.get("input_length")), _count(row.get("output_length"))
            )
        if "Timestamp" in row:
            return TraceEntry(
                _seconds(row["Timestamp"]), _count(row.get("Request tokens")), _count(row.get("Response tokens"))
            )
    except (TypeError, ValueError) as error:
        raise UsageError(f"{path}, line {number} has a value that is no number: {error}.") from None
    raise UsageError(f"{path}, line {number} has no arrival time: give arrival_s, timestamp (ms) or Timestamp (s).")


def _seconds(value: Any) -> float:
    seconds = float(value)
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"{value} is not a time")
    return seconds


def _count(value: Any) -> int | None:
    if value in (None, ""):
        return None
    count = int(value)
    if count < 0:
        raise ValueError(f"{count} tokens")
    return count
