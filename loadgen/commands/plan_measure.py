"""Open-loop rates measured for a plan: each profile's server started as the run started it, rates one after another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import typer

from loadgen.analysis.capacity_model import Demand, LoadPoint
from loadgen.analysis.capacity_offer import Wish
from loadgen.analysis.capacity_search import capacity, station_of
from loadgen.clock import utc_now
from loadgen.commands.sweep_setup import Experiment, SweepRequest, make_experiment, start_requests
from loadgen.engines.base import Engine, EngineEvent
from loadgen.engines.choose import EngineRequest, choose_engine
from loadgen.engines.credentials import key_variable
from loadgen.errors import UsageError
from loadgen.load.open_loop import run_open_loop
from loadgen.load.shape import Arrival, OpenLoop, Stage
from loadgen.load.target import Target
from loadgen.load.warmup import run_warmup
from loadgen.store.codec import convert
from loadgen.store.folder import RunFolder
from loadgen.store.model import Condition
from loadgen.store.open_cells import append_open_cell, open_cell
from loadgen.sweep.tokens import measure_chars_per_token
from loadgen.workloads.base import Prompt, PromptRequest, Purpose, TokenCounter
from loadgen.workloads.lengths import ratio_counter

AROUND = (0.5, 0.7, 0.85, 1.0)
"""Parts of the estimated capacity that are measured: its upper half, where the limit is likely."""
SESSION = 1000
"""Prompts of a plan share no cache block with those of the sweep's sessions."""
WARMUP = 8
MOST_IN_FLIGHT = 1024

Points = Mapping[tuple[Condition, str], Sequence[LoadPoint]]


@dataclass(frozen=True)
class _Job:
    experiment: Experiment
    folder: RunFolder
    engine: Engine
    rates: dict[tuple[Condition, str], tuple[float, ...]]
    seconds: float


def measure_rates(folder: RunFolder, points: Points, wish: Wish, rates: tuple[float, ...], seconds: float) -> None:
    """The rates stand in RUN/plan/open.jsonl when this returns. UsageError if the run cannot be started again."""
    import uvloop

    settings = folder.manifest().settings
    if "request" not in settings or "engine" not in settings:
        raise UsageError(f"{folder.path} was not made by a sweep, so its servers cannot start; leave --measure out.")
    request = convert(settings["request"], SweepRequest)
    request = replace(request, profiles_folder=str(folder.path / "profiles"))
    engine, _ = choose_engine(convert(settings["engine"], EngineRequest))
    wanted = {place: rates or _around(found, wish) for place, found in points.items()}
    job = _Job(make_experiment(request, engine), folder, engine, wanted, seconds)
    starts = start_requests(job.experiment, request, folder)
    try:
        uvloop.run(_all(job, starts))
    finally:
        folder.close()


def _around(points: Sequence[LoadPoint], wish: Wish) -> tuple[float, ...]:
    """Rates around what the closed loop promises; around half of the top level's where it promises nothing."""
    station = station_of(points, wish.slos)
    found = capacity(station, wish.slos, Demand(rate_per_s=1.0)).per_server if station else None
    middle = found or 0.5 * points[-1].requests_per_s
    return tuple(float(f"{part * middle:.3g}") for part in AROUND)


async def _all(job: _Job, starts: Mapping[str, Any]) -> None:
    try:
        for profile in job.experiment.plan.profiles:
            if any(name == profile for _, name in job.rates):
                await _profile(job, profile, starts[profile])
    finally:
        await job.engine.close()


async def _profile(job: _Job, profile: str, start: Any) -> None:
    ready = await job.engine.start(start, lambda event: _tell(job.folder, event))
    try:
        target = Target(
            url=ready.url,
            model=ready.model,
            sampling=job.experiment.plan.sampling,
            api_key_variable=key_variable(job.engine.name),
        )
        counters = await _counters(job, target)
        for condition in (condition for condition, name in job.rates if name == profile):
            for rate in job.rates[condition, profile]:
                await _rate(job, profile, condition, rate, target, counters[condition.workload])
    finally:
        await job.engine.stop(ready, lambda event: _tell(job.folder, event))


async def _counters(job: _Job, target: Target) -> dict[str, TokenCounter]:
    """The sweep's own token lengths, so that prompts have its lengths; else measured anew."""
    known = [event.details["chars_per_token"] for event in job.folder.events() if event.kind == "tokens"]
    workloads = job.experiment.workloads
    ratios = known[-1] if known else await measure_chars_per_token(target, workloads, job.experiment.plan.seed)
    if not isinstance(ratios, dict):
        ratios = dict.fromkeys(workloads, float(ratios))
    return {name: ratio_counter(float(ratio)) for name, ratio in ratios.items()}


async def _rate(
    job: _Job, profile: str, condition: Condition, rate: float, target: Target, counter: TokenCounter
) -> None:
    plan = job.experiment.plan
    target = replace(target, sampling=replace(plan.sampling, temperature=condition.temperature))
    await run_warmup(target, _prompts(job, condition, rate, WARMUP, "warmup", counter), WARMUP)
    # half as many again as the mean: the schedule, not the prompts, ends the run
    prompts = _prompts(job, condition, rate, int(1.5 * rate * job.seconds) + 20, "measure", counter)
    shape = OpenLoop(
        stages=(Stage(job.seconds, rate),), arrival=Arrival.POISSON, max_concurrency=MOST_IN_FLIGHT, seed=plan.seed
    )
    started_at = utc_now()
    result = await run_open_loop(target, prompts, shape)
    cell = open_cell(
        profile,
        condition,
        rate,
        seed=plan.seed,
        started_at=started_at,
        records=result.records,
        in_flight_mean=result.health.in_flight_mean,
        loop_lag_p99_s=result.health.loop_lag_p99_s,
    )
    append_open_cell(job.folder.path, cell)
    typer.echo(f"{profile}, {condition.workload}: {rate:g}/s measured, {len(cell.ttft_s)} requests", err=True)


def _prompts(
    job: _Job, condition: Condition, rate: float, count: int, purpose: Purpose, counter: TokenCounter
) -> tuple[Prompt, ...]:
    request = PromptRequest(
        seed=job.experiment.plan.seed,
        level=max(1, round(1000 * rate)),
        repeat=0,
        count=count,
        purpose=purpose,
        session=SESSION,
        input_tokens=condition.input_tokens,
        max_tokens=job.experiment.plan.max_tokens,
    )
    return job.experiment.workloads[condition.workload].prompts(request, counter)


def _tell(folder: RunFolder, event: EngineEvent) -> None:
    folder.append_event("plan-server", f"{event.profile}: {event.phase} {event.detail}".strip())
