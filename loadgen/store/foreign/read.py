"""Which tool wrote a file, and what it says; nothing is guessed from the file's name."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from loadgen.errors import UsageError
from loadgen.store.foreign import aiperf, guidellm, vllm_bench
from loadgen.store.foreign.model import ForeignCell, Reader

READERS: tuple[tuple[Callable[[object], bool], Reader], ...] = (
    (vllm_bench.matches, vllm_bench.read),
    (guidellm.matches, guidellm.read),
    (aiperf.matches, aiperf.read),
)


def read_foreign(path: Path) -> list[ForeignCell]:
    """The levels of a file. UsageError if it cannot be read, or none of the known tools wrote it."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read ({error}); give a result file.") from None
    data = _parsed(path, text)
    reader = next((read for matches, read in READERS if matches(data)), None)
    if reader is None:
        raise UsageError(
            f"{path} is no result that is known here; give one of `vllm bench serve --save-result`, of GuideLLM (JSON) "
            "or AIPerf's profile_export_aiperf.json."
        )
    cells = reader(path, data)
    if not cells:
        raise UsageError(f"{path} holds no measurement; run the tool again.")
    return cells


def _parsed(path: Path, text: str) -> Any:
    """One JSON value, or one a line (`--append-result`)."""
    try:
        return json.loads(text)
    except ValueError as error:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2:
            raise UsageError(f"{path} is no JSON ({error}); give the tool's JSON result.") from None
    try:
        return [json.loads(line) for line in lines]
    except ValueError as error:
        raise UsageError(f"{path} is no JSON ({error}); give the tool's JSON result.") from None
