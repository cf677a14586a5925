"""A sweep from its first server to its answer: live display, Ctrl-C, reports."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from loadgen.commands.conclude import answer_code, find_findings, show, write
from loadgen.commands.sweep_setup import Experiment, SweepRequest, make_experiment, make_manifest, start_requests
from loadgen.engines.base import Engine
from loadgen.engines.choose import EngineRequest, choose_engine
from loadgen.errors import ExitCode, LoadgenError, NoVerdictError
from loadgen.load.target import Target
from loadgen.store.codec import convert
from loadgen.store.folder import RunFolder, create_run, find_run
from loadgen.store.lock import FolderLock
from loadgen.sweep.cell import CellMeasurer
from loadgen.sweep.estimate import TimeLeft
from loadgen.sweep.events import Listener, Notice, SweepStarted
from loadgen.sweep.interrupt import InterruptedRunError
from loadgen.sweep.plan import all_cells
from loadgen.sweep.run import SweepRun


@dataclass(frozen=True)
class _Job:
    experiment: Experiment
    request: SweepRequest
    engine: Engine
    engine_reason: str
    folder: RunFolder
    as_json: bool


def sweep(request: SweepRequest, wanted: EngineRequest, runs: Path, *, as_json: bool) -> ExitCode:
    """The exit code of a new run; its folder holds everything measured, whatever happens."""
    return _carry_out(_prepare(request, wanted, runs, tuple(sys.argv[1:]), as_json=as_json))


def prepare_sweep(request: SweepRequest, wanted: EngineRequest, runs: Path, argv: tuple[str, ...]) -> RunFolder:
    """A checked run folder in which nothing is measured yet: `resume_sweep` carries it out, in any process.

    `argv` stands in the manifest as the command that repeats the run. UsageError before anything is written.
    """
    job = _prepare(request, wanted, runs, argv, as_json=True)
    start_requests(job.experiment, job.request, job.folder)
    return job.folder


def _prepare(request: SweepRequest, wanted: EngineRequest, runs: Path, argv: tuple[str, ...], *, as_json: bool) -> _Job:
    engine, reason = choose_engine(wanted)
    request = replace(request, slow_engine=getattr(engine, "slow", False))
    experiment = make_experiment(request, engine)
    folder = create_run("-".join(p.name for p in experiment.profiles[1:]), runs)
    manifest = make_manifest(folder.run_id, experiment, request, engine, reason)
    settings = manifest.settings | {"engine": replace(wanted, name=engine.name).stored()}
    folder.write_manifest(replace(manifest, settings=settings, argv=argv))
    return _Job(experiment, request, engine, reason, folder, as_json)


def resume_sweep(name: str, runs: Path, *, as_json: bool) -> ExitCode:
    """The exit code of a run that goes on where it ended: the cells that stand in its folder are not measured again."""
    folder = find_run(name, runs)
    settings = folder.manifest().settings
    request = convert(settings["request"], SweepRequest)
    request = replace(request, profiles_folder=str(folder.path / "profiles"))
    engine, reason = choose_engine(convert(settings["engine"], EngineRequest))
    experiment = make_experiment(request, engine)
    return _carry_out(_Job(experiment, request, engine, reason, folder, as_json))


def _carry_out(job: _Job) -> ExitCode:
    folder = job.folder
    with FolderLock(folder.path), contextlib.closing(folder):
        folder.append_event("started", "measuring begins")
        with _listener(job) as listener:
            _announce(job, listener)
            outcome = _measure(job, listener)
        folder.append_event("completed" if outcome is None else "interrupted", str(outcome or "all cells measured"))
        if not folder.cells():
            if isinstance(outcome, LoadgenError):
                raise outcome
            raise NoVerdictError(f"No cell was measured; {folder.path} holds the servers' logs and events.jsonl why.")
        findings = find_findings(folder)
        write(folder, findings)
        show(folder, findings, as_json=job.as_json)
    if isinstance(outcome, LoadgenError):
        raise type(outcome)(f"{outcome} What was measured stands: make sweep ARGS='--resume {folder.run_id}' goes on.")
    return answer_code(findings)


def _measure(job: _Job, listener: Listener) -> LoadgenError | InterruptedRunError | None:
    """None if the plan was carried out; else what ended it. No server is left either way."""
    import uvloop

    try:
        uvloop.run(_run(job, listener))
    except (LoadgenError, InterruptedRunError) as ending:
        return ending
    return None


async def _run(job: _Job, listener: Listener) -> None:
    cancel = asyncio.Event()
    task = asyncio.current_task()
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        if cancel.is_set() and task is not None:
            task.cancel()
        cancel.set()
        listener(Notice("Stopping: servers go down, what was measured is kept."))

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt)
    plan = job.experiment.plan
    run = SweepRun(
        plan=plan,
        engine=job.engine,
        folder=job.folder,
        measurer=CellMeasurer(plan, job.folder, job.experiment.workloads, cancel),
        starts=start_requests(job.experiment, job.request, job.folder),
        target=Target(url="", model="", continuous_usage=plan.continuous_usage, keep_text=plan.keep_text),
        listener=listener,
        cancel=cancel,
        chars_per_token=_known_token_length(job.folder),
    )
    try:
        await run.run()
    except asyncio.CancelledError:
        raise InterruptedRunError("interrupted") from None
    finally:
        await job.engine.close()


def _known_token_length(folder: RunFolder) -> dict[str, float] | None:
    found = [event.details["chars_per_token"] for event in folder.events() if event.kind == "tokens"]
    return dict(found[-1]) if found else None


def _announce(job: _Job, listener: Listener) -> None:
    plan = job.experiment.plan
    measured = {cell.key for cell in job.folder.cells()}
    missing = tuple(key for key in all_cells(plan) if key not in measured)
    listener(
        SweepStarted(
            run_folder=str(job.folder.path),
            engine=job.engine.name,
            engine_reason=job.engine_reason,
            simulated=job.engine.simulated,
            total_cells=len(missing) + len(measured),
            resumed_cells=len(measured),
            estimate_s=TimeLeft(plan.shape).remaining_s(missing),
        )
    )
    for warning in job.experiment.warnings:
        listener(Notice(warning))


@contextmanager
def _listener(job: _Job) -> Iterator[Listener]:
    from rich.console import Console

    from loadgen.report.live import JsonListener, LineListener, LiveListener

    if job.as_json:
        yield JsonListener()
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield LineListener(console, job.request.against)
        return
    with LiveListener(console, job.request.against) as live:
        yield live
