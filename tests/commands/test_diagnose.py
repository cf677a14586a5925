"""`--diagnose` from the request to the summary, and on a resumed run."""

import json
from pathlib import Path
from typing import Any

import jsonschema

from loadgen.commands.sweep_run import resume_sweep, sweep
from loadgen.commands.sweep_setup import SweepRequest
from loadgen.engines.choose import EngineRequest
from loadgen.report.summary import json_schema
from loadgen.store.diagnostic import FILE, diagnostics
from loadgen.store.folder import find_run

ASKED = SweepRequest(
    workload="code-edit", levels="1,2", repeats=1, window_s=0.5, max_tokens=24, quick=True, diagnose=True
)


def test_a_diagnosed_sweep_says_so_and_resumes(in_process: Any, tmp_path: Path) -> None:
    sweep(ASKED, EngineRequest(name="simulator"), tmp_path, as_json=False)
    folder = find_run("latest", tmp_path)
    found = diagnostics(folder.path)
    assert [(cell.key.profile, cell.key.level) for cell in found] == [("baseline", 2), ("ngram", 2)]
    assert all(cell.tokens_per_chunk.n for cell in found)
    summary = json.loads((folder.path / "summary.json").read_text())
    jsonschema.validate(summary, json_schema())
    assert [one["profile"] for one in summary["diagnostics"]] == ["baseline", "ngram"]
    assert all(one["throughput_ratio"] > 0 for one in summary["diagnostics"])
    assert "Tokens per chunk" in (folder.path / "report.md").read_text()
    cells = folder.cells()

    started = list(in_process.started)
    resume_sweep(folder.run_id, tmp_path, as_json=False)
    assert in_process.started == started

    # As if it had been stopped between the baseline's diagnosis and the profile's.
    lines = (folder.path / FILE).read_bytes().splitlines(keepends=True)
    (folder.path / FILE).write_bytes(lines[0])
    resume_sweep(folder.run_id, tmp_path, as_json=False)
    assert in_process.started == [*started, "ngram"]
    assert [cell.key for cell in diagnostics(folder.path)] == [cell.key for cell in found]
    assert folder.cells() == cells


def test_a_sweep_is_not_diagnosed_unasked() -> None:
    assert not SweepRequest().diagnose
