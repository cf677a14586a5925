"""SPEED-Bench's parquet files: rows with `category` and `turns`; the first turn of each is asked."""

from pathlib import Path

from loadgen.errors import UsageError
from loadgen.workloads.formats.common import Fault, FilePrompt, FilePrompts, refuse, user

_PLACEHOLDER = "FULL BENCHMARK DATA SHOULD BE FETCHED"
"""How the published files begin a row whose text its own licence keeps out; prepare_data.py of the bench fills it."""


def read(path: Path) -> FilePrompts:
    """The first turn of each row; rows that are still placeholders are left out, with a warning that counts them."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise UsageError(
            f"reading {path.name} needs pyarrow; install the extra: pip install 'loadgen[parquet]'"
        ) from error
    try:
        rows = parquet.read_table(path, columns=["turns"]).column("turns").to_pylist()
    except (OSError, KeyError, ArrowException) as error:
        raise UsageError(f"{path} is no SPEED-Bench parquet file with a column turns ({error})") from error
    return from_rows(path, rows)


def from_rows(path: Path, rows: list[object]) -> FilePrompts:
    """The prompts of the column `turns`, each a list of texts or of {content: text}."""
    faults: list[Fault] = []
    prompts: list[FilePrompt] = []
    placeholders = 0
    for number, turns in enumerate(rows, start=1):
        text = _first_text(turns)
        if text is None or not text.strip():
            faults.append(Fault(f"row {number}", "turns holds no text"))
        elif text.startswith(_PLACEHOLDER):
            placeholders += 1
        else:
            prompts.append(user(text))
    refuse(path, faults)
    left_out = (
        f"{placeholders} of {len(rows)} rows of {path.name} are placeholders and were left out; fill them with the "
    )
    return FilePrompts(tuple(prompts), (f"{left_out}benchmark's own prepare_data.py",) if placeholders else ())


def _first_text(turns: object) -> str | None:
    first = turns[0] if isinstance(turns, list) and turns else None
    if isinstance(first, dict):
        first = first.get("content")
    return first if isinstance(first, str) else None
