"""Sweep over K, schedule and verification in one go, under one display."""

import contextlib
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from loadgen.analysis.goal import Goal
from loadgen.analysis.ratios import MIN_N
from loadgen.analysis.verify_words import claim_words
from loadgen.commands.conclude import find_findings, show, write
from loadgen.commands.goal import with_goal
from loadgen.commands.resume import with_resume
from loadgen.commands.sweep_ladder import AUTO, HALF
from loadgen.commands.sweep_measure import Job, StoppedEarlyError, listening, measure, require_cells
from loadgen.commands.sweep_run import prepare_job, stored_job
from loadgen.commands.sweep_setup import SweepRequest
from loadgen.commands.verify_run import carry_out, exit_code, finish, tell_interrupted
from loadgen.commands.verify_setup import (
    Prepared,
    VerifyRequest,
    begun_claim,
    check_margin,
    current_claim,
    prepare,
    resume,
)
from loadgen.engines.choose import EngineRequest, choose_engine
from loadgen.errors import ExitCode, LoadgenError
from loadgen.store.folder import RunFolder, find_run
from loadgen.store.lock import FolderLock
from loadgen.sweep.events import Listener, Notice
from loadgen.sweep.interrupt import InterruptedRunError

ANSWER = "answer"
"""Key of the manifest's settings that holds what an answer was asked for beyond its sweep."""
WINDOW_S = 1.5
"""On the simulator, whose time has no noise but its own: eight servers times six loads times three starts."""
LEVELS_SLOW = "1,2,4"
"""A CPU's servers start in a minute each and turn early."""


@dataclass(frozen=True)
class AnswerRequest:
    """What was asked."""

    sweep: SweepRequest
    engine: EngineRequest
    margin: float | None = None
    goal: Goal | None = None


def answer(asked: AnswerRequest, runs: Path, *, as_json: bool) -> ExitCode:
    """The exit code: the verification's, 3 where nothing is advised that could be verified, 130 after Ctrl-C."""
    check_margin(asked.margin)
    request = with_defaults(asked.sweep, asked.engine)
    job = prepare_job(request, asked.engine, runs, tuple(sys.argv[1:]), as_json=as_json)
    manifest = with_goal(job.folder.manifest(), asked.goal)
    job.folder.write_manifest(replace(manifest, settings=manifest.settings | {ANSWER: {"margin": asked.margin}}))
    return _carry_out(job, asked.margin, as_json=as_json)


def resume_answer(name: str, runs: Path, *, as_json: bool) -> ExitCode:
    """The exit code of an answer that goes on in whatever phase it ended: what was measured is not measured again."""
    job = stored_job(find_run(name, runs), as_json=as_json)
    margin = job.folder.manifest().settings.get(ANSWER, {}).get("margin")
    return _carry_out(job, margin, as_json=as_json)


def _carry_out(job: Job, margin: float | None, *, as_json: bool) -> ExitCode:
    folder = job.folder
    try:
        with FolderLock(folder.path), contextlib.closing(folder):
            with listening(job.request.against, as_json=as_json) as listener:
                _sweep(job, listener)
                prepared = _verification(folder, margin, as_json=as_json)
                listener(Notice(f"Now put to the test: {claim_words(prepared.claim)}."))
                verdict = carry_out(prepared, listener).verdict
            finish(folder, as_json=as_json)
    except (InterruptedRunError, StoppedEarlyError, KeyboardInterrupt):
        _leave(job, as_json=as_json)
        tell_interrupted(folder, "answer", as_json=as_json)
        return ExitCode.INTERRUPTED
    except LoadgenError as error:
        # What was measured is shown, then what went wrong is told.
        _leave(job, as_json=as_json)
        raise with_resume(error, folder, "answer") from None
    return exit_code(verdict)


def _verification(folder: RunFolder, margin: float | None, *, as_json: bool) -> Prepared:
    """The one that was begun, if it tests what the run advises now; else a new one."""
    claim, _ = current_claim(folder)
    if begun_claim(folder) == claim:
        return resume(folder, as_json=as_json)
    return prepare(folder, VerifyRequest(margin=margin), as_json=as_json)


def with_defaults(request: SweepRequest, wanted: EngineRequest) -> SweepRequest:
    """The request with what an answer needs on this engine, where nothing else was asked for."""
    engine, _ = choose_engine(wanted)
    slow = getattr(engine, "slow", False)
    request = replace(request, k=request.k or (HALF if request.quick or slow or engine.simulated else AUTO))
    if slow and request.levels is None:
        request = replace(request, levels=LEVELS_SLOW)
    if not engine.simulated or request.quick:
        return request
    # Every repeat gets its own start of each server, so that the interval holds for starts to come.
    sessions, repeats = (MIN_N, 1) if request.repeats is None else (request.sessions, request.repeats)
    return replace(request, window_s=request.window_s or WINDOW_S, sessions=sessions, repeats=repeats)


def _sweep(job: Job, listener: Listener) -> None:
    """All cells of the ladder; raises what ended it before that."""
    outcome = measure(job, listener)
    require_cells(job, outcome)
    if outcome is not None:
        raise outcome


def _leave(job: Job, *, as_json: bool) -> None:
    """The reports of what there is, if there is anything."""
    if job.folder.cells():
        findings = find_findings(job.folder)
        write(job.folder, findings)
        show(job.folder, findings, as_json=as_json)
