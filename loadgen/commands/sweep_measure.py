"""Measuring a plan with a display, Ctrl-C and events: what every command does that fills a run folder."""

import asyncio
import functools
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from loadgen.analysis.refine import LOOKS
from loadgen.commands import options
from loadgen.commands.machine_limits import require_carried
from loadgen.commands.sweep_setup import Experiment, SweepRequest, start_requests
from loadgen.engines.base import Engine
from loadgen.engines.credentials import key_variable
from loadgen.engines.managed import ManagedEngine
from loadgen.errors import ExitCode, LoadgenError, NoVerdictError, UsageError
from loadgen.load.target import Target
from loadgen.load.workers.closed_loop import run_workers
from loadgen.load.workers.pool import WorkerPool
from loadgen.store.folder import RunFolder
from loadgen.store.model import CellKey
from loadgen.sweep.cell import CellMeasurer
from loadgen.sweep.diagnose import DiagnosticProbe
from loadgen.sweep.estimate import Speed, TimeLeft, speed_of
from loadgen.sweep.events import Listener, Notice, SweepStarted
from loadgen.sweep.interrupt import InterruptedRunError
from loadgen.sweep.plan import all_cells, stage_starts
from loadgen.sweep.refine import Refiner
from loadgen.sweep.run import Probe, SweepRun
from loadgen.sweep.steady import SteadyListener, steady

LONG_CELL_S = 120.0
"""Nobody expects a single cell to take longer: said before work starts."""


@dataclass(frozen=True)
class Job:
    """One plan, where it runs, and where its facts go."""

    experiment: Experiment
    request: SweepRequest
    engine: Engine
    engine_reason: str
    folder: RunFolder
    as_json: bool
    probe: Callable[[CellMeasurer], Probe] | None = None
    """Makes what is measured while a stage's servers are still up, after its cells."""


class StoppedEarlyError(LoadgenError):
    """The user stopped before there was anything to report."""

    exit_code = ExitCode.INTERRUPTED


def measure(job: Job, listener: Listener) -> LoadgenError | InterruptedRunError | None:
    """None if the plan was carried out; else what ended it. No server is left either way; the events say which."""
    folder, plan = job.folder, job.experiment.plan
    require_carried(plan.top_level, job.request.workers, "--levels")
    folder.append_event("started", "measuring begins")
    _announce(job, listener)
    outcome = _measured(job, listener)
    try:
        folder.append_event("completed" if outcome is None else "interrupted", str(outcome or "all cells measured"))
    except UsageError:
        # The disk is full: what ended the run says so. Without this line a run reads as interrupted, which it is.
        if outcome is None:
            raise
    return outcome


def require_cells(job: Job, outcome: LoadgenError | InterruptedRunError | None) -> None:
    """Raises what ended the run, StoppedEarlyError or NoVerdictError, if there is not one cell."""
    if job.folder.cells():
        return
    if isinstance(outcome, LoadgenError):
        raise outcome
    path = job.folder.path
    if isinstance(outcome, InterruptedRunError):
        raise StoppedEarlyError(f"Stopped before the first cell was measured; {path} holds the servers' logs.")
    raise NoVerdictError(f"No cell was measured; {path / 'events.jsonl'} says why, and servers/ beside it holds logs.")


def _measured(job: Job, listener: Listener) -> LoadgenError | InterruptedRunError | None:
    import uvloop

    try:
        uvloop.run(_run(job, listener))
    except (LoadgenError, InterruptedRunError) as ending:
        return ending
    except asyncio.CancelledError:  # a third signal, while the servers went down: their guards end them
        return InterruptedRunError("interrupted")
    return None


def stop_signals() -> tuple[signal.Signals, ...]:
    """What ends a run cleanly: a closed terminal too, unless `nohup` asked for that to be survived."""
    hangup = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
    return (signal.SIGINT, signal.SIGTERM, *hangup)


def hurry(engine: Engine) -> None:
    """What a second signal does: the servers that were started here are ended at once."""
    if isinstance(engine, ManagedEngine):
        engine.hurry()


async def _run(job: Job, shown: Listener) -> None:
    listener = steady(shown)
    cancel = asyncio.Event()
    task = asyncio.current_task()
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        if cancel.is_set() and task is not None:
            task.cancel()
            hurry(job.engine)
        cancel.set()
        listener(Notice("Stopping: servers go down, what was measured is kept."))

    for number in stop_signals():
        loop.add_signal_handler(number, interrupt)
    listener.when_lost = cancel.set
    if listener.lost:
        cancel.set()
    plan = job.experiment.plan
    measurer = CellMeasurer(plan, job.folder, job.experiment.workloads, cancel)
    diagnosis = DiagnosticProbe if job.request.diagnose else None
    make = job.probe or diagnosis
    probe = make(measurer) if make else None
    run = SweepRun(
        plan=plan,
        engine=job.engine,
        folder=job.folder,
        measurer=measurer,
        starts=start_requests(job.experiment, job.request, job.folder),
        target=Target(url="", model="", keep_text=plan.keep_text, api_key_variable=key_variable(job.engine.name)),
        listener=listener,
        cancel=cancel,
        chars_per_token=_known_token_length(job.folder),
        before_stop=probe,
        also_wanted=probe.missing if probe else None,
        refiner=_refiner(job, listener),
    )
    try:
        async with _load_processes(job.request.workers, measurer):
            await run.run()
    except asyncio.CancelledError:
        raise InterruptedRunError("interrupted") from None
    finally:
        await job.engine.close()


def _refiner(job: Job, listener: Listener) -> Refiner | None:
    request = job.request
    if not request.refine:
        return None
    budget = None if request.budget is None else options.seconds(request.budget, "--budget")
    return Refiner(job.folder, listener, options.share(request.half_width, "--half-width"), LOOKS, budget)


@asynccontextmanager
async def _load_processes(count: int, measurer: CellMeasurer) -> AsyncIterator[None]:
    """Several load processes for the whole run, if more than one was asked for."""
    if count == 1:
        yield
        return
    async with WorkerPool(count) as pool:
        measurer.run_load = functools.partial(run_workers, pool)
        yield


def _known_token_length(folder: RunFolder) -> dict[str, float] | None:
    found = [event.details["chars_per_token"] for event in folder.events() if event.kind == "tokens"]
    return dict(found[-1]) if found else None


def _speed(engine: Engine) -> Speed:
    return speed_of(simulated=engine.simulated, slow=bool(getattr(engine, "slow", False)), running=engine.name == "url")


def _long_cells(engine: Engine, keys: tuple[CellKey, ...], time_left: TimeLeft) -> tuple[str, ...]:
    """What is to be said of levels whose single cells take minutes; empty if there are none."""
    key = max(keys, key=time_left.cell_s, default=None)
    if key is None or time_left.cell_s(key) < LONG_CELL_S:
        return ()
    cause = " (the simulator's own CPU time decides there, not the hardware it stands for)" if engine.simulated else ""
    about = f"One cell at {key.level} in flight takes about {time_left.cell_s(key) / 60:.0f} minutes here"
    return (f"{about}{cause}; lower --levels answer sooner.",)


def _announce(job: Job, listener: Listener) -> None:
    plan = job.experiment.plan
    cells = job.folder.cells()
    measured = {cell.key for cell in cells}
    missing = tuple(key for key in all_cells(plan) if key not in measured)
    time_left = TimeLeft.of(plan, _speed(job.engine))
    for cell in cells:
        time_left.learn(cell.key, cell.e2e_s.mean, None)
    starts = stage_starts(missing, together=plan.order == "together")
    listener(
        SweepStarted(
            run_folder=str(job.folder.path),
            engine=job.engine.name,
            engine_reason=job.engine_reason,
            simulated=job.engine.simulated,
            total_cells=len(missing) + len(measured),
            resumed_cells=len(measured),
            estimate_s=time_left.remaining_s(missing, len(starts)),
            hardware=str(job.folder.manifest().hardware.get("preset", "")),
            resumed_rates=tuple((cell.key, cell.output_tokens_per_s) for cell in cells),
        )
    )
    for warning in (*job.experiment.warnings, *_long_cells(job.engine, missing, time_left)):
        listener(Notice(warning))


@contextmanager
def listening(against: str, *, as_json: bool) -> Iterator[Listener]:
    """One display for everything that is measured inside: live in a terminal, else lines; JSON lines if asked for. It
    is steady: where nobody reads it any more, the run stops as it does for a closed terminal.
    """
    from loadgen.commands.lost_streams import PlainConsole, silence
    from loadgen.report.live import JsonListener, LineListener, LiveListener

    if as_json:
        yield SteadyListener(JsonListener(), silence)
        return
    console = PlainConsole()
    if not console.is_terminal:
        yield SteadyListener(LineListener(console, against), silence)
        return
    with LiveListener(console, against) as live:
        yield SteadyListener(live, silence)
