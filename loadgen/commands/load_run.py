"""What `loadgen load` does: preflight, prompts, one load between two scrapes, figures."""

import asyncio
import contextlib
import json
import math
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from loadgen.clock import now_s
from loadgen.commands.load_text import table, warnings_of
from loadgen.commands.machine_limits import advice, require_carried
from loadgen.commands.workload_options import chosen_workload, workload_notes
from loadgen.engines.address import clean_url
from loadgen.errors import ExitCode, ServerError, UsageError
from loadgen.load.closed_loop import run_closed_loop
from loadgen.load.figures import load_figures, whole_run
from loadgen.load.open_loop import run_open_loop
from loadgen.load.preflight import ServedModel, preflight
from loadgen.load.runner import run_fast
from loadgen.load.shape import Arrival, ClosedLoop, LoadProgress, LoadResult, OpenLoop, Stage, WindowHooks
from loadgen.load.target import Target, Timeouts
from loadgen.load.workers.closed_loop import run_workers
from loadgen.load.workers.pool import WorkerPool
from loadgen.metrics.delta import delta
from loadgen.metrics.model import CounterDelta
from loadgen.metrics.parse import Snapshot
from loadgen.metrics.scrape import MetricsClient, is_simulated
from loadgen.sweep.tokens import measure_chars_per_token
from loadgen.workloads.base import Prompt, PromptRequest, Sampling, Workload
from loadgen.workloads.formats.traces import read_trace
from loadgen.workloads.lengths import ratio_counter
from loadgen.workloads.trace_workload import TraceWorkload

MAX_TOKENS = 256


@dataclass(frozen=True)
class LoadRequest:
    """The command's arguments."""

    url: str
    model: str
    workload: str
    concurrency: int
    requests: int
    max_tokens: int | None
    input_tokens: int | None
    window_s: float | None
    rate_per_s: float | None
    arrival: str
    temperature: float
    ignore_eos: bool
    seed: int
    timeout_s: float | None
    input_lengths: str | None
    output_lengths: str | None
    workers: int
    stages: str | None
    trace: Path | None
    trace_speed: float
    ca_file: str | None
    verify_tls: bool
    use_proxy: bool

    @property
    def cap(self) -> int | None:
        """Of each output; None leaves it to the lengths that were drawn or recorded."""
        own = self.trace is not None or self.output_lengths is not None
        return self.max_tokens or (None if own else MAX_TOKENS)

    @property
    def is_open(self) -> bool:
        """True if a schedule starts the requests, and not the ends of earlier ones."""
        return self.rate_per_s is not None or self.stages is not None or self.trace is not None


def run_load(request: LoadRequest, *, as_json: bool) -> ExitCode:
    """Prints the figures and says how it ended."""
    request = replace(request, url=clean_url(request.url))
    schedule = _open_loop(request) if request.is_open else None
    if schedule is None and request.requests < request.concurrency:
        raise UsageError(
            f"--requests {request.requests} cannot keep --concurrency {request.concurrency} in flight: give at least "
            "as many requests, better four times as many."
        )
    if schedule is not None and request.workers > 1:
        raise UsageError("--workers splits a closed loop: an open loop runs in one process, so leave one of them out.")
    # An open loop has at most one request in flight for each that it sends.
    require_carried(min(request.concurrency, request.requests), request.workers, "--concurrency")
    workload = chosen_workload(request.workload, request.input_lengths, request.output_lengths, request.trace)
    result, server, simulated = run_fast(_run(request, schedule, workload))
    result = whole_run(result) if _is_whole_run(request, result) else result
    figures = load_figures(result)
    figures["simulated"] = simulated
    figures["server"] = _server_json(server)
    if result.interrupted:
        figures["interrupted"] = True
    if as_json:
        typer.echo(json.dumps(figures, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        if simulated:
            typer.echo("SIMULATED: a simulator answers there, so no figure is from hardware.\n")
        typer.echo(table(figures, result, server))
    for warning in (*workload_notes([workload]), *advice(request.workers), *warnings_of(result)):
        typer.echo(f"warning: {warning}", err=True)
    if result.interrupted:
        return ExitCode.INTERRUPTED
    if result.records and not result.outcomes["ok"]:
        typer.echo(f"loadgen: all {len(result.records)} requests failed; the errors stand above.", err=True)
        return ExitCode.NO_VERDICT
    return ExitCode.ANSWER


async def _run(
    request: LoadRequest, schedule: OpenLoop | None, workload: Workload
) -> tuple[LoadResult, CounterDelta, bool]:
    """The load, the server's counters over its window, and whether a simulator answered."""
    target = Target(
        url=request.url,
        model=request.model,
        sampling=Sampling(request.temperature, seed=request.seed, ignore_eos=request.ignore_eos),
        timeouts=Timeouts(total_s=request.timeout_s),
        verify_tls=request.verify_tls,
        ca_file=request.ca_file,
        use_proxy_environment=request.use_proxy,
    )
    served = await preflight(target)
    target = replace(target, model=served.model_id)
    prompts = await _prompts(request, workload, target, served)
    cancel = asyncio.Event()
    async with MetricsClient(target.url, verify_tls=request.verify_tls) as metrics:
        scrapes = _Scrapes(metrics)
        hooks = WindowHooks(scrapes.take, scrapes.take, _progress if sys.stderr.isatty() else None)
        with _signals(cancel):
            result = await _load(request, schedule, target, prompts, hooks, cancel)
        if sys.stderr.isatty():
            typer.echo("\r\033[K", err=True, nl=False)
        return result, scrapes.delta(), scrapes.simulated


def _open_loop(request: LoadRequest) -> OpenLoop:
    """The schedule that was asked for: one of a rate, stages and a trace."""
    if request.arrival not in [arrival.value for arrival in Arrival]:
        raise UsageError(f"--arrival {request.arrival} is unknown: give poisson or constant.")
    if sum(given is not None for given in (request.rate_per_s, request.stages, request.trace)) != 1:
        raise UsageError("--rate, --stages and --trace are three ways to say the same: give one of them.")
    stages: tuple[Stage, ...] = ()
    times: tuple[float, ...] = ()
    if request.rate_per_s is not None:
        # without a window the prompts end the run: twice their mean time holds them all
        stages = (Stage(request.window_s or 2 * request.requests / request.rate_per_s, request.rate_per_s),)
    elif request.stages is not None:
        stages = parse_stages(request.stages)
    elif request.trace is not None:
        times = read_trace(request.trace).times_s
    return OpenLoop(
        stages=stages,
        arrival=Arrival(request.arrival),
        trace_s=times,
        trace_speed=request.trace_speed,
        max_concurrency=request.concurrency,
        seed=request.seed,
    )


def parse_stages(text: str) -> tuple[Stage, ...]:
    """`30x2,30x8`: 30 s at 2 requests a second, then 30 s at 8."""
    try:
        pairs = [part.split("x") for part in text.split(",")]
        return tuple(Stage(float(seconds), float(rate)) for seconds, rate in pairs)
    except ValueError:
        raise UsageError(f"--stages {text!r} is no list of stages: write it like 30x2,30x8 (seconds x rate).") from None


async def _load(
    request: LoadRequest,
    schedule: OpenLoop | None,
    target: Target,
    prompts: tuple[Prompt, ...],
    hooks: WindowHooks,
    cancel: asyncio.Event,
) -> LoadResult:
    if schedule is not None:
        return await run_open_loop(target, prompts, schedule, hooks, cancel=cancel)
    window_s = math.inf if request.window_s is None else request.window_s
    closed = ClosedLoop(
        concurrency=request.concurrency,
        window_s=window_s,
        max_window_s=window_s,
        # no warm-up tells how long a request lasts: a short spread breaks the lockstep without a long ramp
        spread_s=min(1.0, 0.02 * (request.concurrency - 1)),
    )
    if request.workers == 1:
        return await run_closed_loop(target, prompts, closed, hooks, cancel=cancel)
    async with WorkerPool(request.workers) as pool:
        return await run_workers(pool, target, prompts, closed, hooks, cancel=cancel)


async def _prompts(request: LoadRequest, workload: Workload, target: Target, served: ServedModel) -> tuple[Prompt, ...]:
    cap = request.cap
    if served.max_model_len is not None and cap is not None and cap >= served.max_model_len:
        raise UsageError(
            f"--max-tokens {cap} leaves no room for a prompt: {served.model_id} has a context of "
            f"{served.max_model_len} tokens."
        )
    chars = await measure_chars_per_token(target, {workload.name: workload}, request.seed)
    wanted = PromptRequest(
        seed=request.seed,
        level=request.concurrency,
        repeat=0,
        count=min(request.requests, len(workload.trace.arrivals))
        if isinstance(workload, TraceWorkload)
        else request.requests,
        input_tokens=request.input_tokens,
        max_tokens=cap,
    )
    return workload.prompts(wanted, ratio_counter(chars[workload.name]))


class _Scrapes:
    """The server's counters at the window's edges; a server without them gives empty ones."""

    def __init__(self, metrics: MetricsClient) -> None:
        self._metrics = metrics
        self._taken: list[Snapshot] = []

    async def take(self) -> None:
        try:
            self._taken.append(await self._metrics.scrape())
        except ServerError as error:
            self._taken.append(Snapshot({}, (str(error),), b"", 0.0, now_s()))

    @property
    def simulated(self) -> bool:
        """True if the server says that it is a simulator."""
        return any(is_simulated(snapshot) for snapshot in self._taken)

    def delta(self) -> CounterDelta:
        if len(self._taken) < 2:
            return CounterDelta(duration_s=0.0, warnings=("the window was not closed, so there are no server figures",))
        before, after = self._taken
        return delta(before, after, after.at_s - before.at_s)


def _is_whole_run(request: LoadRequest, result: LoadResult) -> bool:
    """True if the figures are those of the whole run: an open loop, where every scheduled request counts, or a closed
    one too short for a steady part.
    """
    return request.is_open or request.requests < 2 * request.concurrency or result.requests_ended_in_window == 0


def _server_json(server: CounterDelta) -> dict[str, object]:
    """The deltas by name; what the server does not tell is None."""
    from loadgen.metrics.figures import figures

    return {figure.name: figure.value for figure in figures(server)} | {
        "duration_s": server.duration_s or None,
        "acceptance_per_position": list(server.acceptance_per_position),
        "requests_finished": server.requests_finished,
        "reset_detected": server.reset_detected,
        "warnings": list(server.warnings),
    }


@contextlib.contextmanager
def _signals(cancel: asyncio.Event) -> Iterator[None]:
    """The first SIGINT or SIGTERM asks for the end; a second one ends the process at once."""
    loop = asyncio.get_running_loop()
    both = (signal.SIGINT, signal.SIGTERM)

    def stop() -> None:
        cancel.set()
        restore()

    def restore() -> None:
        for number in both:
            loop.remove_signal_handler(number)

    for number in both:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        restore()


def _progress(progress: LoadProgress) -> None:
    line = (
        f"{progress.phase}  {progress.elapsed_s:5.1f} s  {progress.in_flight} in flight  {progress.finished} done  "
        f"{progress.failed} failed  {progress.tokens_per_s:,.0f} tokens/s"
    )
    with contextlib.suppress(OSError):  # the terminal may be gone
        typer.echo(f"\r\033[K{line}", err=True, nl=False)
