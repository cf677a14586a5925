"""A sweep from its first server to its answer: live display, Ctrl-C, reports."""

import contextlib
import sys
from dataclasses import replace
from pathlib import Path

import typer

from loadgen.commands.conclude import answer_code, find_findings, show, write
from loadgen.commands.extend import NOTHING, Asked, extend
from loadgen.commands.resume import resume_words, with_resume
from loadgen.commands.sweep_measure import Job, listening, measure, require_cells
from loadgen.commands.sweep_setup import (
    SweepRequest,
    make_experiment,
    make_manifest,
    require_startable,
    start_requests,
)
from loadgen.engines.choose import EngineRequest, choose_engine
from loadgen.errors import ExitCode, LoadgenError, UsageError
from loadgen.store.codec import convert
from loadgen.store.folder import RunFolder, create_run, find_run
from loadgen.store.lock import FolderLock
from loadgen.sweep.interrupt import InterruptedRunError


def sweep(request: SweepRequest, wanted: EngineRequest, runs: Path, *, as_json: bool) -> ExitCode:
    """The exit code of a new run; its folder holds everything measured, whatever happens."""
    return _carry_out(prepare_job(request, wanted, runs, tuple(sys.argv[1:]), as_json=as_json))


def prepare_sweep(request: SweepRequest, wanted: EngineRequest, runs: Path, argv: tuple[str, ...]) -> RunFolder:
    """A checked run folder in which nothing is measured yet: `resume_sweep` carries it out, in any process.

    `argv` stands in the manifest as the command that repeats the run. UsageError before anything is written.
    """
    job = prepare_job(request, wanted, runs, argv, as_json=True)
    start_requests(job.experiment, job.request, job.folder)
    return job.folder


def prepare_job(
    request: SweepRequest, wanted: EngineRequest, runs: Path, argv: tuple[str, ...], *, as_json: bool
) -> Job:
    """A new run, checked and with its manifest; nothing is measured yet."""
    engine, reason = choose_engine(wanted)
    request = replace(request, slow_engine=getattr(engine, "slow", False))
    experiment = make_experiment(request, engine)
    require_startable(engine, experiment, request)
    folder = create_run("-".join(p.name for p in experiment.sources or experiment.profiles[1:]), runs)
    manifest = make_manifest(folder.run_id, experiment, request, engine, reason)
    settings = manifest.settings | {"engine": replace(wanted, name=engine.name).stored()}
    folder.write_manifest(replace(manifest, settings=settings, argv=argv))
    return Job(experiment, request, engine, reason, folder, as_json)


def resume_sweep(name: str, runs: Path, *, as_json: bool, asked: Asked = NOTHING) -> ExitCode:
    """The exit code of a run that goes on where it ended: the cells that stand in its folder are not measured again.
    With `asked`, more levels or repeats are added to its plan first.
    """
    folder = find_run(name, runs)
    if asked.given:
        with FolderLock(folder.path), contextlib.closing(folder):
            extend(folder, asked)
    return _carry_out(stored_job(folder, as_json=as_json))


def stored_job(folder: RunFolder, *, as_json: bool) -> Job:
    """The job that the run was begun with, its profiles read from its own folder."""
    settings = folder.manifest().settings
    if "request" not in settings or "engine" not in settings:
        raise UsageError(f"{folder.path} was not begun by a sweep, so that there is no plan to go on with.")
    request = convert(settings["request"], SweepRequest)
    request = replace(request, profiles_folder=str(folder.path / "profiles"))
    engine, reason = choose_engine(convert(settings["engine"], EngineRequest))
    return Job(make_experiment(request, engine), request, engine, reason, folder, as_json)


def _carry_out(job: Job) -> ExitCode:
    folder = job.folder
    with FolderLock(folder.path), contextlib.closing(folder):
        with listening(job.request.against, as_json=job.as_json) as listener:
            outcome = measure(job, listener)
        require_cells(job, outcome)
        findings = find_findings(folder)
        write(folder, findings)
        show(folder, findings, as_json=job.as_json)
    if isinstance(outcome, InterruptedRunError) and not job.as_json:
        with contextlib.suppress(OSError):  # the terminal may be gone
            typer.echo(f"Interrupted: {resume_words(folder)} goes on.", err=True)
    if isinstance(outcome, LoadgenError):
        raise with_resume(outcome, folder, "sweep")
    return answer_code(findings)
