"""A run without one cell: what ended it decides the exit code."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from loadgen.commands.sweep_measure import Job, require_cells
from loadgen.errors import ExitCode, LoadgenError, ServerError
from loadgen.sweep.interrupt import InterruptedRunError


@pytest.mark.parametrize(
    ("outcome", "code", "words"),
    [
        (InterruptedRunError("interrupted"), ExitCode.INTERRUPTED, "Stopped before the first cell"),
        (ServerError("It died."), ExitCode.NO_VERDICT, "It died."),
        (None, ExitCode.NO_VERDICT, "events.jsonl says why"),
    ],
)
def test_no_cell_ends_with_the_code_of_its_cause(tmp_path: Path, outcome: Any, code: ExitCode, words: str) -> None:
    # Only the folder is asked.
    job = cast("Job", SimpleNamespace(folder=SimpleNamespace(path=tmp_path, cells=lambda: ())))
    with pytest.raises(LoadgenError, match=words) as raised:
        require_cells(job, outcome)
    assert raised.value.exit_code is code
