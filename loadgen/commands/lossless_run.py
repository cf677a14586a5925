"""What `loadgen lossless` does: servers, questions, verdict, files."""

import asyncio
import contextlib
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loadgen import __version__
from loadgen.analysis.lossless_greedy import TOLERANCES, dtype_kind
from loadgen.analysis.lossless_model import LosslessFinding, Quality
from loadgen.clock import utc_now
from loadgen.commands import options
from loadgen.commands.conclude import print_json
from loadgen.commands.sweep_setup import Experiment, SweepRequest, make_experiment, start_requests
from loadgen.engines.base import Engine
from loadgen.engines.choose import EngineRequest, choose_engine
from loadgen.errors import ExitCode, UsageError
from loadgen.load.target import Target
from loadgen.profiles.model import ServerProfile, SpeculativeConfig
from loadgen.report.live import JsonListener, LineListener
from loadgen.report.lossless_json import lossless_json
from loadgen.report.lossless_text import lines, sentence
from loadgen.report.summary import dumps
from loadgen.store.codec import builtins, encode
from loadgen.store.folder import RunFolder, create_run, write_whole
from loadgen.store.lock import FolderLock
from loadgen.sweep.events import Listener, Notice
from loadgen.sweep.interrupt import InterruptedRunError
from loadgen.sweep.lossless_flow import SAMPLING_CONCURRENCY, LosslessPlan, LosslessRun
from loadgen.sweep.lossless_servers import EngineServers
from loadgen.sweep.tokens import measure_chars_per_token
from loadgen.workloads.base import Prompt, PromptRequest
from loadgen.workloads.lengths import ratio_counter

_CODES = {
    Quality.SAME: ExitCode.ANSWER,
    Quality.DIFFERS: ExitCode.FINDINGS,
    Quality.NOT_TESTED: ExitCode.NO_VERDICT,
}


@dataclass(frozen=True)
class LosslessRequest:
    """What was asked; None = the default for the engine."""

    sweep: SweepRequest
    engine: EngineRequest
    prompts: int | None = None
    samples: int | None = None
    prefixes: int = 4
    margin: float = 0.1
    dtype: str | None = None


@dataclass(frozen=True)
class _Job:
    asked: LosslessRequest
    experiment: Experiment
    plan: LosslessPlan
    engine: Engine
    folder: RunFolder
    listener: Listener
    prompts: int


def lossless(asked: LosslessRequest, runs: Path, *, as_json: bool) -> ExitCode:
    """The exit code of the verdict, which is printed and stands in the run folder's `lossless/`."""
    if asked.dtype is not None and asked.dtype not in TOLERANCES:
        raise UsageError(f"--dtype {asked.dtype} is unknown; the known ones are {', '.join(TOLERANCES)}.")
    if not 0 < asked.margin < 1:
        raise UsageError(f"--margin {asked.margin:g} is out of range; give a share between 0 and 1, such as 0.1.")
    engine, reason = choose_engine(asked.engine)
    slow = bool(getattr(engine, "slow", False))
    experiment = make_experiment(replace(asked.sweep, slow_engine=slow), engine)
    profile = _profile_to_test(experiment)
    folder = create_run(f"lossless-{profile.name}", runs)
    plan = _plan(asked, profile, experiment, slow=slow, simulated=engine.simulated)
    with FolderLock(folder.path), contextlib.closing(folder):
        listener = _listener(folder, as_json=as_json)
        listener(Notice(f"{'SIMULATED: ' if engine.simulated else ''}engine {engine.name} ({reason})"))
        for warning in experiment.warnings:
            listener(Notice(warning))
        job = _Job(asked, experiment, plan, engine, folder, listener, asked.prompts or (16 if slow else 40))
        finding, about = _carry_out(job)
        about = {"engine": engine.name, "simulated": engine.simulated, **about}
        content = lossless_json(finding, about)
        write_whole(_path(folder, "result.json"), dumps(content).encode())
    _show(finding, content, folder, simulated=engine.simulated, as_json=as_json)
    return _CODES[finding.quality]


def _profile_to_test(experiment: Experiment) -> ServerProfile:
    """The one profile besides the baseline; UsageError for what cannot be tested."""
    against, *tested = experiment.profiles
    if len(tested) != 1:
        raise UsageError("--profile names several profiles; test them one by one.")
    if len(experiment.workloads) != 1:
        raise UsageError("--workload names several workloads; test them one by one.")
    profile = tested[0]
    if profile.speculative is None:
        raise UsageError(f"{profile.name} does not speculate, so there is nothing to test; name one that does.")
    if against.speculative is not None:
        raise UsageError(f"{against.name} speculates itself; give --against a profile without speculation.")
    if profile.speculative.raw.get("rejection_sample_method") == "synthetic":
        raise UsageError(
            f"{profile.name} accepts drafts by dice (rejection_sample_method synthetic), so its answers are wrong on "
            "purpose; test a profile with the standard method."
        )
    return profile


def _plan(
    asked: LosslessRequest, profile: ServerProfile, experiment: Experiment, *, slow: bool, simulated: bool
) -> LosslessPlan:
    assert profile.speculative is not None
    return LosslessPlan(
        profile=profile.name,
        against=experiment.plan.profiles[0],
        k=profile.speculative.num_speculative_tokens,
        temperatures=tuple(t for t in options.temperatures(asked.sweep.temperature) if t > 0),
        samples=asked.samples or (300 if slow else 1500),
        prefixes=asked.prefixes,
        margin=asked.margin,
        wide=8 if slow else 32,
        concurrency=_drafting_concurrency(profile.speculative),
        seed=asked.sweep.seed,
        seeded=simulated,
    )


def _drafting_concurrency(speculative: SpeculativeConfig) -> int:
    """Requests in flight while sampling: many, but no more than the schedule drafts for."""
    drafting = [last for _, last, k in speculative.schedule or () if k > 0]
    return max(1, min([SAMPLING_CONCURRENCY, *([max(drafting)] if drafting else [])]))


def _carry_out(job: _Job) -> tuple[LosslessFinding, dict[str, Any]]:
    import uvloop

    try:
        return uvloop.run(_run(job))
    except InterruptedRunError:
        raise KeyboardInterrupt from None


async def _run(job: _Job) -> tuple[LosslessFinding, dict[str, Any]]:
    """The verdict and what it was found with; no server is left, whatever happens."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    servers = EngineServers(job.engine, start_requests(job.experiment, job.asked.sweep, job.folder), job.listener)
    try:
        await servers.start_together()
        await servers.use(job.plan.against)
        first, second = await _prompts(job, servers)
        plan = replace(job.plan, kind=job.asked.dtype or _kind(job.experiment, servers))
        run = LosslessRun(plan, servers, lambda text: job.listener(Notice(text)), lambda n, f: _keep(job.folder, n, f))
        finding = await run.run(first, second)
        return finding, _about(job, plan, servers)
    except asyncio.CancelledError:
        raise InterruptedRunError("interrupted") from None
    finally:
        await servers.stop()
        await job.engine.close()


async def _prompts(job: _Job, servers: EngineServers) -> tuple[tuple[Prompt, ...], tuple[Prompt, ...]]:
    """Two sets of prompts that share none."""
    ready = servers.facts[job.plan.against]
    workload = next(iter(job.experiment.workloads.values()))
    target = Target(ready.url, ready.model)
    known = await measure_chars_per_token(target, {workload.name: workload}, job.plan.seed)
    counter = ratio_counter(known[workload.name])

    def take(repeat: int) -> tuple[Prompt, ...]:
        wanted = PromptRequest(
            seed=job.plan.seed,
            level=1,
            repeat=repeat,
            count=job.prompts,
            input_tokens=job.experiment.plan.conditions[0].input_tokens,
            max_tokens=job.asked.sweep.max_tokens,
        )
        return workload.prompts(wanted, counter)

    return take(0), take(1)


def _kind(experiment: Experiment, servers: EngineServers) -> str:
    facts = [ready.effective for ready in servers.facts.values()]
    return dtype_kind(*facts, *(profile.settings for profile in experiment.profiles))


def _about(job: _Job, plan: LosslessPlan, servers: EngineServers) -> dict[str, Any]:
    return {
        "created_at": utc_now(),
        "loadgen_version": __version__,
        "workload": next(iter(job.experiment.workloads)),
        "plan": builtins(plan),
        "servers": {
            name: {"version": ready.version, "model": ready.model, "effective": ready.effective}
            for name, ready in servers.facts.items()
        },
    }


def _listener(folder: RunFolder, *, as_json: bool) -> Listener:
    from rich.console import Console

    shown: Listener = JsonListener() if as_json else LineListener(Console(stderr=True))

    def listen(event: Any) -> None:
        shown(event)
        if isinstance(event, Notice):
            folder.append_event("notice", event.text)

    return listen


def _keep(folder: RunFolder, name: str, facts: Any) -> None:
    """`lossless/NAME.jsonl`, one fact a line; a second set of prompts goes below the first."""
    with _path(folder, f"{name}.jsonl").open("ab") as file:
        file.write(b"".join(encode(fact) + b"\n" for fact in facts))


def _path(folder: RunFolder, name: str) -> Path:
    inside = folder.path / "lossless"
    inside.mkdir(exist_ok=True)
    return inside / name


def _show(
    finding: LosslessFinding, content: dict[str, Any], folder: RunFolder, *, simulated: bool, as_json: bool
) -> None:
    if as_json:
        print_json(dumps(content))
        return
    print_json("\n".join(_text(finding, folder, simulated=simulated)))


def _text(finding: LosslessFinding, folder: RunFolder, *, simulated: bool) -> Iterator[str]:
    yield f"{'SIMULATED: ' if simulated else ''}{sentence(finding)}"
    yield ""
    yield from lines(finding)
    yield ""
    yield f"Everything: {folder.path / 'lossless' / 'result.json'}"
