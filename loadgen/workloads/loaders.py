"""Finds out what kind of file a workload file is, and reads it."""

import json
from collections.abc import Callable
from pathlib import Path

from loadgen.errors import UsageError
from loadgen.workloads.formats import jsonl, sharegpt, spec_bench, speed_bench
from loadgen.workloads.formats.common import FilePrompts, read_bytes
from loadgen.workloads.formats.traces import looks_like_trace

READERS: dict[str, Callable[[Path], FilePrompts]] = {
    "jsonl": jsonl.read,
    "sharegpt": sharegpt.read,
    "spec-bench": spec_bench.read,
    "speed-bench": speed_bench.read,
}


def load_prompts(path: Path, file_format: str | None = None) -> FilePrompts:
    """The file's prompts; the format is told by `file_format` or else by the file's ending and first line."""
    chosen = file_format or detect_format(path)
    if chosen not in READERS:
        raise UsageError(f"there is no workload format {chosen!r}; take one of {', '.join(READERS)}")
    found = READERS[chosen](path)
    if not found.prompts:
        raise UsageError(f"workload file {path} holds no prompt; give a file with at least one")
    return found


def detect_format(path: Path) -> str:
    """One of READERS; UsageError for a trace, which has arrivals and lengths but no prompts, or an unknown ending."""
    ending = path.suffix.lower()
    if ending == ".parquet":
        return "speed-bench"
    if ending == ".json":
        return "sharegpt"
    if ending == ".csv":
        raise UsageError(f"{path} is a request trace, not a list of prompts; replay it with loadgen load --trace")
    if ending not in (".jsonl", ".ndjson"):
        raise UsageError(f"workload file {path} has an unknown ending; give .jsonl, .json (ShareGPT) or .parquet")
    first = _first_record(path)
    if isinstance(first, dict) and {"question_id", "turns"} <= first.keys():
        return "spec-bench"
    if looks_like_trace(first) and not (isinstance(first, dict) and "prompt" in first):
        raise UsageError(f"{path} is a request trace, not a list of prompts; replay it with loadgen load --trace")
    return "jsonl"


def _first_record(path: Path) -> object:
    """The first line that holds something, as JSON; None if it is none: the reader will say what is wrong with it."""
    for line in read_bytes(path).split(b"\n"):
        if line.strip():
            try:
                return json.loads(line.decode("utf-8"))
            except (ValueError, RecursionError):
                return None
    return None
