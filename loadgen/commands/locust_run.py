"""A run through Locust: servers up, a master and workers, the levels walked, the same answer as a sweep's."""

import asyncio
import contextlib
import importlib.util
import os
import signal
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import typer

import loadgen
from loadgen.commands.conclude import answer_code, find_findings, show, write
from loadgen.commands.locust_job import FOLDER_VARIABLE, LocustJob, write_job
from loadgen.commands.sweep_measure import Job, require_cells
from loadgen.commands.sweep_run import prepare_job
from loadgen.commands.sweep_setup import SweepRequest, start_requests
from loadgen.engines.base import EngineEvent, ReadyServer
from loadgen.engines.choose import EngineRequest, choose_engine
from loadgen.engines.ports import free_port
from loadgen.errors import ExitCode, NoVerdictError, UsageError
from loadgen.load.runner import run_fast
from loadgen.load.target import Target
from loadgen.metrics.scrape import MetricsClient
from loadgen.store.lock import FolderLock
from loadgen.store.model import ServerFacts
from loadgen.sweep.plan import all_cells
from loadgen.sweep.simulated import SENTENCE, mark_if_simulated
from loadgen.sweep.tokens import measure_chars_per_token

SETTLE_S = 2.0
"""Users start within a second; their first requests are the warm-up."""
END_S = 10.0


@dataclass(frozen=True)
class LocustOptions:
    """How Locust itself runs."""

    workers: int
    """Started here."""
    remote_workers: int
    """Started by hand on other machines, and waited for."""
    web: tuple[str, int]
    """Host and port of the web interface."""
    bind: tuple[str, int]
    """Where the master listens; port 0 takes a free one."""
    headless: bool
    as_json: bool


def run_locust(request: SweepRequest, wanted: EngineRequest, runs: Path, options: LocustOptions) -> ExitCode:
    """The exit code of a new run; its folder holds what `loadgen sweep` would have left."""
    choose_engine(wanted)  # a wrong URL is told before a missing package
    if importlib.util.find_spec("locust") is None:
        raise UsageError("Locust is not installed: make locust, or pip install 'loadgen[locust]'.")
    job = prepare_job(request, wanted, runs, tuple(sys.argv[1:]), as_json=options.as_json)
    if not job.engine.can_run_together:
        raise UsageError(
            "Locust walks the levels with all servers up: give --url baseline=URL,ngram=URL of running servers, or "
            "--engine simulator."
        )
    with FolderLock(job.folder.path), contextlib.closing(job.folder):
        code = run_fast(_run(job, options))
        if code and not job.folder.cells():
            raise NoVerdictError(f"Locust ended with code {code}; {job.folder.path / 'servers'} holds its logs.")
        require_cells(job, None)
        findings = find_findings(job.folder)
        write(job.folder, findings)
        show(job.folder, findings, as_json=options.as_json)
    return answer_code(findings)


def locustfile() -> Path:
    """The one beside the package; UsageError where only the package is installed."""
    path = Path(loadgen.__file__).parent.parent / "locustfile.py"
    if not path.is_file():
        raise UsageError("locustfile.py is not beside the loadgen package: run this in loadgen's repository.")
    return path


async def _run(job: Job, options: LocustOptions) -> int:
    """Locust's exit code; no server and no process is left."""
    folder, engine = job.folder, job.engine
    ready: list[ReadyServer] = []

    def on_engine(event: EngineEvent) -> None:
        folder.append_event("server", f"{event.profile}: {event.phase} {event.detail}".strip())

    try:
        for start in start_requests(job.experiment, job.request, folder).values():
            ready.append(await engine.start(start, on_engine))
            async with MetricsClient(ready[-1].url) as metrics:
                if await mark_if_simulated(folder, metrics):
                    typer.echo(SENTENCE, err=True)
            folder.append_server(_facts(ready[-1]))
        await _write_job(job, ready, options)
        return await _processes(folder.path, options)
    finally:
        for server in ready:
            await engine.stop(server, on_engine)
        await engine.close()


async def _write_job(job: Job, ready: list[ReadyServer], options: LocustOptions) -> None:
    plan = job.experiment.plan
    targets = {server.profile: Target(url=server.url, model=server.model, sampling=plan.sampling) for server in ready}
    first = targets[ready[0].profile]
    chars = await measure_chars_per_token(first, job.experiment.workloads, plan.seed)
    cells = all_cells(plan)
    if len({cell.condition.temperature for cell in cells}) > 1:
        raise UsageError("Through Locust one temperature is measured at a time: give --temperature one value.")
    temperature = cells[0].condition.temperature
    targets = {
        name: replace(target, sampling=replace(plan.sampling, temperature=temperature))
        for name, target in targets.items()
    }
    write_job(
        job.folder.path,
        LocustJob(
            cells=cells,
            targets=targets,
            chars_per_token=chars,
            nodes=options.workers + options.remote_workers,
            window_s=plan.shape.window_s,
            settle_s=SETTLE_S,
            min_requests=plan.shape.min_requests,
            seed=plan.seed,
            max_tokens=plan.max_tokens,
            input_lengths=job.request.input_lengths,
            output_lengths=job.request.output_lengths,
        ),
    )


def _facts(server: ReadyServer) -> ServerFacts:
    return ServerFacts(
        profile=server.profile,
        session=0,
        url=server.url,
        model=server.model,
        version=server.version,
        start_s=server.start_s,
        command=server.command,
        effective=dict(server.effective),
        max_model_len=server.max_model_len,
    )


async def _processes(folder: Path, options: LocustOptions) -> int:
    """A master and its workers until the master ends, or Ctrl-C ends them all."""
    bind_host, port = options.bind[0], options.bind[1] or free_port()
    patience_s = 600 if options.remote_workers else 60
    master = [
        *("--master", "--master-bind-host", bind_host, "--master-bind-port", str(port), "--only-summary"),
        *("--expect-workers", str(options.workers + options.remote_workers)),
        *("--expect-workers-max-wait", str(patience_s)),
        *("--logfile", str(folder / "servers" / "locust-master.log")),
    ]
    if options.headless:
        master += ["--headless"]
    else:
        web_host, web_port = options.web
        master += ["--autostart", "--web-host", web_host, "--web-port", str(web_port)]
        typer.echo(f"Locust's web interface: http://{web_host}:{web_port} (Ctrl-C ends the run)", err=True)
    (folder / "servers").mkdir(exist_ok=True)
    environment = os.environ | {FOLDER_VARIABLE: str(folder)}
    processes = [await _locust(master, environment)]
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, _end, processes[0])
    try:
        # all addresses, however they are written (*, ::), are reached at this one
        host = bind_host if bind_host.strip("0.*:") else "127.0.0.1"
        for place in range(options.workers):
            log = str(folder / "servers" / f"locust-worker-{place}.log")
            worker = ["--worker", "--master-host", host, "--master-port", str(port), "--logfile", log]
            processes.append(await _locust(worker, environment))
        return await processes[0].wait()
    finally:
        for process in processes:
            _end(process)
        for process in processes:
            try:
                async with asyncio.timeout(END_S):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()


async def _locust(arguments: list[str], environment: dict[str, str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "locust", "-f", str(locustfile()), *arguments),
        env=environment,
        # its tables of rounded percentiles: ours come from the records, and its log has a file
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C goes to us alone, and from us to them
    )


def _end(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
