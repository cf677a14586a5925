"""What `loadgen import` does: read the files, write a run folder, analyse it."""

import sys
from dataclasses import dataclass
from pathlib import Path

import typer

from loadgen import __version__
from loadgen.analysis.check_context import IMPORT
from loadgen.analysis.foreign import imported_cells, unknowns
from loadgen.clock import utc_now
from loadgen.commands.conclude import answer_code, find_findings, show, write
from loadgen.errors import ExitCode, UsageError
from loadgen.store.folder import RunFolder, create_run
from loadgen.store.foreign.model import ForeignCell
from loadgen.store.foreign.read import read_foreign
from loadgen.store.lock import FolderLock
from loadgen.store.model import CellResult, Condition, Manifest, ServerFacts

BASELINE = "baseline"


@dataclass(frozen=True)
class ImportRequest:
    """The command's arguments."""

    baseline: tuple[Path, ...]
    profile: tuple[Path, ...]
    name: str
    method: str
    k: int
    workload: str
    temperature: float
    simulated: bool = False
    """No such file tells whether a simulator gave its figures."""


def run_import(request: ImportRequest, runs: Path, *, as_json: bool) -> ExitCode:
    """The exit code of the analysis; the run folder holds everything that was read."""
    if request.name == BASELINE:
        raise UsageError(f"--name {BASELINE} is the other server's name; give the profile another one.")
    theirs = _read(request.baseline)
    ours = _read(request.profile)
    _require_one(theirs + ours)
    condition = Condition(request.workload, _prompt_tokens(theirs + ours), request.temperature)
    base = imported_cells(theirs, BASELINE, condition)
    cells = (*base, *imported_cells(ours, request.name, condition, len(base)))
    common = sorted({c.key.level for c in base} & {c.key.level for c in cells[len(base) :]})
    if not common:
        raise UsageError("The two servers have no concurrency in common; measure both at the same ones.")
    folder = create_run(f"import-{request.name}", runs)
    with FolderLock(folder.path):
        _fill(folder, request, condition, cells, theirs + ours)
        findings = find_findings(folder)
        write(folder, findings)
    show(folder, findings, as_json=as_json)
    if not as_json:
        for sentence in unknowns(theirs + ours):
            typer.echo(f"- {sentence}")
    return answer_code(findings)


def _read(paths: tuple[Path, ...]) -> list[ForeignCell]:
    return [cell for path in paths for cell in read_foreign(path)]


def _require_one(cells: list[ForeignCell]) -> None:
    """One tool and one model: else the ratio compares those, and not the servers."""
    tools, models = sorted({cell.tool for cell in cells}), sorted({cell.model or "unknown" for cell in cells})
    if len(tools) > 1:
        raise UsageError(f"The files come from {' and '.join(tools)}, which differ in method; take one tool for both.")
    if len(models) > 1:
        raise UsageError(f"The files are about {' and '.join(models)}; compare servers of one model.")


def _prompt_tokens(cells: list[ForeignCell]) -> int:
    means = [cell.prompt_tokens.mean for cell in cells if cell.prompt_tokens.mean is not None]
    return round(sum(means) / len(means)) if means else 0


def _fill(
    folder: RunFolder,
    request: ImportRequest,
    condition: Condition,
    cells: tuple[CellResult, ...],
    read: list[ForeignCell],
) -> None:
    levels = tuple(sorted({cell.key.level for cell in cells}))
    manifest = Manifest(
        run_id=folder.run_id,
        created_at=utc_now(),
        loadgen_version=__version__,
        argv=tuple(sys.argv[1:]),
        engine=IMPORT,
        engine_reason=f"import: measured by {read[0].tool}",
        simulated=request.simulated,
        profiles=(BASELINE, request.name),
        against=BASELINE,
        methods={BASELINE: "none", request.name: request.method},
        num_speculative_tokens={request.name: request.k},
        conditions=(condition,),
        levels=levels,
        repeats=max(cell.key.repeat for cell in cells) + 1,
        sessions=1,
        seed=0,
        quick=False,
        order="unknown",
        sampling={"temperature": request.temperature},
        hardware={},
        settings={"files": sorted({cell.file for cell in read}), "unknown": list(unknowns(read))},
    )
    folder.write_manifest(manifest)
    if read[0].model is not None:
        facts = ServerFacts(BASELINE, 0, "", read[0].model, None, 0.0, (), {})
        folder.append_server(facts)
    for cell in cells:
        folder.append_cell(cell)
    folder.append_event("completed", f"imported {len(cells)} measurements")
    folder.close()
