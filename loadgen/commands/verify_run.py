"""A verification from its first server to its verdict, and into the run's reports."""

import contextlib
from dataclasses import replace

import typer

from loadgen.analysis.goal import slo_table
from loadgen.analysis.verify_conclude import verify
from loadgen.analysis.verify_model import Claim, Verdict, Verification
from loadgen.commands.conclude import VERIFICATION, find_findings, show, write
from loadgen.commands.request_points import read_points
from loadgen.commands.resume import resume_words, with_resume
from loadgen.commands.sweep_measure import listening, measure, require_cells
from loadgen.commands.verify_setup import Prepared, VerifyRequest, prepare, resume
from loadgen.errors import ExitCode, LoadgenError, UsageError
from loadgen.profiles.loader import load_profile
from loadgen.store.codec import encode
from loadgen.store.folder import RUNS, RunFolder, write_whole
from loadgen.store.lock import FolderLock
from loadgen.sweep.events import Listener, Notice
from loadgen.sweep.interrupt import InterruptedRunError
from loadgen.sweep.steady import steady
from loadgen.sweep.verify import OpenProbe, open_runs


def verify_command(folder: RunFolder, asked: VerifyRequest, *, resumed: bool, as_json: bool) -> ExitCode:
    """The exit code of a verification, begun or gone on with; 130 after Ctrl-C, when the command to go on is told."""
    if resumed and asked != VerifyRequest():
        raise UsageError("--resume goes on with what was asked for then; leave the other options out.")
    try:
        with FolderLock(folder.path):
            prepared = resume(folder, as_json=as_json) if resumed else prepare(folder, asked, as_json=as_json)
            try:
                with listening(prepared.job.request.against, as_json=as_json) as listener:
                    verification = carry_out(prepared, listener)
            except LoadgenError as error:
                raise with_resume(error, folder, "verify") from None
            finish(folder, as_json=as_json)
    except (InterruptedRunError, KeyboardInterrupt):
        tell_interrupted(folder, "verify", as_json=as_json)
        return ExitCode.INTERRUPTED
    return exit_code(verification.verdict)


def tell_interrupted(folder: RunFolder, command: str, *, as_json: bool) -> None:
    """Says on standard error which command goes on; as a JSON line where the rest is."""
    text = f"Interrupted: {resume_words(folder, command)} goes on."
    if as_json:
        from loadgen.report.live import JsonListener

        steady(JsonListener())(Notice(text))
    else:
        with contextlib.suppress(OSError):  # the terminal may be gone
            typer.echo(text, err=True)


def carry_out(prepared: Prepared, listener: Listener) -> Verification:
    """The verdict, which stands in RUN/verify then. LoadgenError or InterruptedRunError if it is not whole."""
    job = prepared.job
    if prepared.rates:
        condition, rates, length_s = prepared.claim.condition, prepared.rates, prepared.open_loop_s
        job = replace(job, probe=lambda measurer: OpenProbe(measurer, condition, rates, length_s))
    with FolderLock(job.folder.path), contextlib.closing(job.folder):
        outcome = measure(job, listener)
        require_cells(job, outcome)
        if outcome is not None:
            raise outcome
    whole = job.folder.path.parent
    run = "" if whole.parent == RUNS else f"{whole.parent}/{whole.name}"
    verification = conclude(job.folder, prepared.claim, prepared.margin, prepared.margin_reason, run)
    write_whole(job.folder.path / VERIFICATION, encode(verification) + b"\n")
    return verification


def conclude(own: RunFolder, claim: Claim, margin: float, margin_reason: str, run: str = "") -> Verification:
    """What the cells of a verification say. `run`: the run's path, where its name alone is not found."""
    kept = own.path / "profiles"
    requested = {
        name: load_profile(name, kept).settings for name in claim.arms.values() if (kept / f"{name}.yaml").is_file()
    }
    return verify(
        claim,
        own.manifest(),
        own.cells(),
        own.servers(),
        open_runs(own),
        margin=margin,
        margin_reason=margin_reason,
        requested=requested,
        slo=slo_table(claim.slos, read_points(own)) if claim.slos else None,
        run=run,
    )


def finish(folder: RunFolder, *, as_json: bool) -> None:
    """The run's reports with the verdict in them, and the verdict shown."""
    findings = find_findings(folder)
    write(folder, findings)
    show(folder, findings, as_json=as_json)


def exit_code(verdict: Verdict) -> ExitCode:
    """0 holds, 1 does not hold, 3 not resolved."""
    return {
        Verdict.HOLDS: ExitCode.ANSWER,
        Verdict.FAILS: ExitCode.FINDINGS,
        Verdict.OPEN: ExitCode.NO_VERDICT,
    }[verdict]
