"""What `loadgen lossless` does: servers, questions, verdict, files."""

import asyncio
import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from loadgen import __version__
from loadgen.analysis.lossless_greedy import dtype_kind
from loadgen.analysis.lossless_model import LosslessFinding, Quality
from loadgen.analysis.lossless_servers import model_of, other_model, server_differences
from loadgen.clock import utc_now
from loadgen.commands import lossless_files as files
from loadgen.commands.conclude import print_json
from loadgen.commands.lossless_setup import LosslessRequest, check_request, make_plan, prepare_experiment, prompt_count
from loadgen.commands.sweep_measure import hurry, stop_signals
from loadgen.commands.sweep_setup import Experiment, start_requests
from loadgen.engines.base import Engine, ReadyServer
from loadgen.engines.choose import choose_engine
from loadgen.engines.credentials import key_variable
from loadgen.errors import ExitCode, LoadgenError, ServerError
from loadgen.load.target import Target
from loadgen.metrics.scrape import MetricsClient
from loadgen.report.live import JsonListener, LineListener
from loadgen.report.lossless_json import LosslessAbout, lossless_json
from loadgen.report.lossless_text import lines, sentence
from loadgen.report.lossless_write import write_lossless
from loadgen.report.summary import dumps
from loadgen.store.folder import RunFolder, create_run, write_whole
from loadgen.store.lock import FolderLock
from loadgen.store.model import ServerFacts
from loadgen.sweep.events import Notice, SweepEvent
from loadgen.sweep.interrupt import InterruptedRunError
from loadgen.sweep.lossless_flow import LosslessRun
from loadgen.sweep.lossless_journal import Journal
from loadgen.sweep.lossless_plan import LosslessPlan
from loadgen.sweep.lossless_seeds import decide_seeds
from loadgen.sweep.lossless_servers import EngineServers
from loadgen.sweep.simulated import SENTENCE, tells_simulated
from loadgen.sweep.steady import SteadyListener
from loadgen.sweep.tokens import measure_chars_per_token
from loadgen.workloads.base import Prompt, PromptRequest
from loadgen.workloads.lengths import ratio_counter

_CODES = {
    Quality.SAME: ExitCode.ANSWER,
    Quality.DIFFERS: ExitCode.FINDINGS,
    Quality.NOT_TESTED: ExitCode.NO_VERDICT,
}


@dataclass
class _Job:
    stored: files.StoredRequest
    experiment: Experiment
    engine: Engine
    folder: RunFolder
    listener: SteadyListener
    journal: Journal

    @property
    def asked(self) -> LosslessRequest:
        return self.stored.request

    def say(self, text: str) -> None:
        self.listener(Notice(text))


def lossless(asked: LosslessRequest, runs: Path, *, as_json: bool) -> ExitCode:
    """The exit code of the verdict, which is printed and stands in the run folder with its reports."""
    check_request(asked)
    engine, reason = choose_engine(asked.engine)
    experiment = prepare_experiment(asked, engine)
    folder = create_run(f"lossless-{experiment.profiles[1].name}", runs)
    asked = replace(asked, engine=replace(asked.engine, name=engine.name))
    stored = files.StoredRequest(utc_now(), __version__, tuple(sys.argv[1:]), reason, engine.simulated, asked)
    files.keep(folder, files.REQUEST, stored)
    return _carry_out(stored, experiment, engine, folder, as_json=as_json)


def resume(name: str, runs: Path, seeds: str, *, as_json: bool) -> ExitCode:
    """The exit code of a test that goes on where it ended: what was asked is not asked again. `seeds` other than
    `auto` changes what is sent with samples from here on; those of the other kind are drawn anew.
    """
    folder = files.find_lossless(name, runs)
    stored = files.stored_request(folder)
    asked = stored.request
    if seeds != "auto":
        asked = replace(asked, seeds=seeds)
        check_request(asked)
        plan = files.stored_plan(folder)
        if plan is not None:
            decided = decide_seeds(seeds, {}, simulated=stored.simulated)
            files.keep(folder, files.PLAN, replace(plan, seeds=decided))
    asked = replace(asked, sweep=replace(asked.sweep, profiles_folder=str(folder.path / "profiles")))
    engine, _ = choose_engine(asked.engine)
    experiment = prepare_experiment(asked, engine)
    return _carry_out(replace(stored, request=asked), experiment, engine, folder, as_json=as_json)


def _carry_out(
    stored: files.StoredRequest, experiment: Experiment, engine: Engine, folder: RunFolder, *, as_json: bool
) -> ExitCode:
    import uvloop

    with FolderLock(folder.path), contextlib.closing(folder):
        listener = _listener(folder, as_json=as_json)
        listener(Notice(f"{'SIMULATED: ' if stored.simulated else ''}engine {engine.name} ({stored.engine_reason})"))
        for warning in experiment.warnings:
            listener(Notice(warning))
        with contextlib.closing(Journal(files.inside(folder), lambda text: listener(Notice(text)))) as journal:
            if journal.answers:
                listener(Notice(f"{journal.answers:,} answers stand in {folder.path} and are not asked again."))
            job = _Job(stored, experiment, engine, folder, listener, journal)
            try:
                finding, plan = uvloop.run(_run(job))
            except (InterruptedRunError, asyncio.CancelledError):
                if not as_json:
                    with contextlib.suppress(OSError):  # the terminal may be gone
                        typer.echo(f"Interrupted: {files.resume_words(folder)} goes on.", err=True)
                return ExitCode.INTERRUPTED
            except LoadgenError as error:
                if not journal.answers:
                    raise
                again = f"What was measured stands: {files.resume_words(folder)} goes on."
                raise type(error)(f"{error} {again}") from error
        _conclude(job, plan, finding, as_json=as_json)
    return _CODES[finding.quality]


async def _run(job: _Job) -> tuple[LosslessFinding, LosslessPlan]:
    """The verdict and the plan it was found by; no server is left, whatever happens."""
    task = asyncio.current_task()
    assert task is not None
    stopping = False

    def interrupt() -> None:
        nonlocal stopping
        if stopping:
            hurry(job.engine)
        stopping = True
        task.cancel()

    for number in stop_signals():
        asyncio.get_running_loop().add_signal_handler(number, interrupt)
    job.listener.when_lost = interrupt
    if job.listener.lost:
        raise InterruptedRunError("interrupted")
    starts = start_requests(job.experiment, job.asked.sweep, job.folder)
    servers = EngineServers(job.engine, starts, job.listener, lambda ready: _note_server(job.folder, ready))
    try:
        plan = files.stored_plan(job.folder) or await _plan(job, servers)

        async def prompts(number: int) -> Sequence[Prompt]:
            return await _prompts(job, servers, plan.against, number)

        return await LosslessRun(plan, servers, job.say, job.journal).run(prompts), plan
    except asyncio.CancelledError:
        raise InterruptedRunError("interrupted") from None
    finally:
        # A lost terminal while servers go down is no second signal.
        stopping, job.listener.when_lost = True, lambda: None
        try:
            await servers.stop()
        finally:
            await job.engine.close()


async def _plan(job: _Job, servers: EngineServers) -> LosslessPlan:
    """The plan with what only running servers tell, kept for a resume."""
    plan = make_plan(job.asked, job.experiment, job.engine)
    await servers.start_together()
    await servers.use(plan.against)
    await _mark_if_simulated(job, servers)
    facts = {name: ready.effective for name, ready in servers.facts.items()}
    settings = [profile.settings for profile in job.experiment.profiles]
    plan = replace(
        plan,
        kind=job.asked.dtype or dtype_kind(*facts.values(), *settings),
        seeds=decide_seeds(job.asked.seeds, facts, simulated=job.stored.simulated),
    )
    if plan.temperatures:
        sent = "each sample has a seed of its own" if plan.seeds.sent else "samples have no seeds"
        job.say(f"Seeds: {sent} ({plan.seeds.why}).")
    files.keep(job.folder, files.PLAN, plan)
    return plan


async def _mark_if_simulated(job: _Job, servers: EngineServers) -> None:
    """The run says SIMULATED from now on if a simulator stands behind a URL or an image."""
    for ready in servers.facts.values():
        async with MetricsClient(ready.url) as metrics:
            if not job.stored.simulated and await tells_simulated(metrics):
                job.stored = replace(job.stored, simulated=True)
                files.keep(job.folder, files.REQUEST, job.stored)
                job.say(SENTENCE)


async def _prompts(job: _Job, servers: EngineServers, against: str, number: int) -> Sequence[Prompt]:
    """Set 0 or 1 of the prompts; they share none."""
    await servers.use(against)
    ready = servers.facts[against]
    workload = next(iter(job.experiment.workloads.values()))
    target = Target(ready.url, ready.model, api_key_variable=key_variable(job.engine.name))
    seed = job.asked.sweep.seed
    known = await measure_chars_per_token(target, {workload.name: workload}, seed)
    wanted = PromptRequest(
        seed=seed,
        level=1,
        repeat=number,
        count=prompt_count(job.asked, job.engine),
        input_tokens=job.experiment.plan.conditions[0].input_tokens,
        max_tokens=job.asked.sweep.max_tokens,
    )
    return workload.prompts(wanted, ratio_counter(known[workload.name]))


def _note_server(folder: RunFolder, ready: ReadyServer) -> None:
    facts = (ready.url, ready.model, ready.version, ready.start_s, ready.command)
    server = ServerFacts(ready.profile, 0, *facts, dict(ready.effective), ready.max_model_len)
    # Those of earlier starts too: the answers that stand in the folder came from them.
    if differing := other_model([*folder.servers(), server]):
        one, other = sorted(differing, key=lambda server: server.profile)  # not by which came up first
        raise ServerError(
            f"{one.profile} serves {model_of(one)} and {other.profile} {model_of(other)}: two models have two "
            "qualities whatever speculation does; start both servers with one MODEL."
        )
    folder.append_server(server)


def _conclude(job: _Job, plan: LosslessPlan, finding: LosslessFinding, *, as_json: bool) -> None:
    """Writes result.json and the reports, and shows the verdict."""
    stored, folder = job.stored, job.folder
    about = LosslessAbout(
        run_id=folder.run_id,
        created_at=stored.created_at,
        loadgen_version=stored.loadgen_version,
        argv=stored.argv,
        engine=job.engine.name,
        engine_reason=stored.engine_reason,
        simulated=stored.simulated,
        workload=next(iter(job.experiment.workloads)),
        max_tokens=stored.request.sweep.max_tokens,
        plan=plan,
        servers={facts.profile: facts for facts in folder.servers()},
    )
    content = lossless_json(finding, about)
    write_whole(files.inside(folder) / files.RESULT, dumps(content).encode())
    reports = write_lossless(folder.path, finding, about)
    folder.append_event("completed", sentence(finding))
    if as_json:
        print_json(dumps(content))
        return
    print_json("\n".join(_text(finding, about, reports["report.html"])))


def _listener(folder: RunFolder, *, as_json: bool) -> SteadyListener:
    from loadgen.commands.lost_streams import PlainConsole, silence

    shown = JsonListener() if as_json else LineListener(PlainConsole())

    def listen(event: SweepEvent) -> None:
        if isinstance(event, Notice):
            folder.append_event("notice", event.text)
        shown(event)

    return SteadyListener(listen, silence)


def _text(finding: LosslessFinding, about: LosslessAbout, report: Path) -> Iterator[str]:
    yield f"{'SIMULATED: ' if about.simulated else ''}{sentence(finding)}"
    for difference in server_differences(finding.against, about.servers):
        yield f"! the servers differ: {difference}"
    yield ""
    yield from lines(finding)
    yield ""
    yield f"Report: {report}"
