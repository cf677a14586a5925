"""What a sweep needs before it starts: the request checked, the plan, the manifest. Nothing is started here."""

import os
import platform
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

from loadgen import __version__
from loadgen.analysis.ladder import SETTING as LADDER
from loadgen.analysis.ladder import LadderArm
from loadgen.analysis.refine import LOOKS
from loadgen.clock import utc_now
from loadgen.commands import options
from loadgen.commands.input_lengths import require_lengths, require_room
from loadgen.commands.machine_limits import advice, require_carried
from loadgen.commands.sweep_ladder import Ladder, make_ladder
from loadgen.commands.workload_options import chosen_workload, require_prompts, workload_notes
from loadgen.engines.base import Engine, StartRequest
from loadgen.engines.credentials import refuse_secrets, server_variables
from loadgen.errors import UsageError
from loadgen.profiles.compat import check_profile
from loadgen.profiles.loader import dump_profile, load_profile
from loadgen.profiles.model import ServerProfile
from loadgen.profiles.values import short
from loadgen.store.codec import builtins
from loadgen.store.folder import RunFolder
from loadgen.store.model import Condition, Manifest
from loadgen.sweep.plan import CellShape, SweepPlan
from loadgen.workloads.base import Sampling, Workload

LEVELS = "1,2,4,8,16,32"
LEVELS_QUICK = "1,4,16"
LEVELS_CPU = "1,2,4,8"
LONGEST = 32768
"""The simulator's context where nothing else is said."""
MOST_REPEATS = 1000
"""Every cell of a plan is a row in memory; more is a slip of the hand."""


@dataclass(frozen=True)
class SweepRequest:
    """What was asked, as it stands on the command line; None = the default for the engine."""

    profile: str = "ngram"
    against: str = "baseline"
    workload: str = "code-edit,chat"
    levels: str | None = None
    repeats: int | None = None
    quick: bool = False
    seed: int = 1
    order: str | None = None
    sessions: int = 1
    input_tokens: str | None = None
    temperature: str = "0"
    max_tokens: int | None = None
    window_s: float | None = None
    model: str | None = None
    hardware: str | None = None
    profiles_folder: str = "server_profiles"
    server_args: tuple[str, ...] = ()
    server_env: tuple[str, ...] = ()
    start_timeout_s: float = 600.0
    input_lengths: str | None = None
    """Prompt lengths drawn per prompt: `uniform:200-800`; None takes `input_tokens` or the workload's own."""
    output_lengths: str | None = None
    ignore_eos: bool = False
    """Every output is as long as its cap, the same for all profiles."""
    workers: int = 1
    """Load processes."""
    k: str | None = None
    """A ladder of K: `1,2,4`, or `auto`."""
    schedule_costs: bool = False
    """Measure constant schedules beside the static servers of the ladder."""
    refine: bool = False
    """Add levels and repeats where they narrow the break-even."""
    half_width: str = "10%"
    budget: str | None = None
    diagnose: bool = False
    """A short cell with usage in every chunk per profile and condition, after the cells that decide."""
    extension: tuple[tuple[int, int], ...] = ()
    """(level, repeats in all) that `--resume` added to the plan."""
    slow_engine: bool = False
    """True for a real vLLM on a CPU: fewer levels, shorter outputs."""


@dataclass(frozen=True)
class Experiment:
    """A checked request."""

    plan: SweepPlan
    profiles: tuple[ServerProfile, ...]
    workloads: dict[str, Workload]
    warnings: tuple[str, ...]
    sources: tuple[ServerProfile, ...] = ()
    """What a ladder's profiles were derived from: not measured themselves."""
    ladder: dict[str, LadderArm] = field(default_factory=dict)


def load_profiles(request: SweepRequest) -> tuple[tuple[ServerProfile, ...], tuple[str, ...]]:
    """The profiles, the baseline first, and what is to be said of them. UsageError if one cannot run."""
    names = options.names(request.profile, "--profile")
    if request.against in names:
        names = tuple(name for name in names if name != request.against)
        if not names:
            raise UsageError(
                f"--profile and --against are both {request.against}; a profile is compared with another one."
            )
    found = tuple(load_profile(name, Path(request.profiles_folder)) for name in (request.against, *names))
    warnings: list[str] = []
    for profile in found:
        warnings += check_profile(profile, vllm_version=None, model=request.model)
    return found, tuple(warnings)


def make_experiment(request: SweepRequest, engine: Engine) -> Experiment:
    """The plan that follows from the request and the engine's nature."""
    refuse_secrets(request.server_args, "--server-arg")
    server_variables(request.server_env)
    profiles, warnings = load_profiles(request)
    sources, ladder = profiles[1:], Ladder()
    if request.schedule_costs and request.k is None:
        raise UsageError("--schedule-costs prices the rungs of a ladder; give one too, such as --k 1,2,4.")
    if request.k is not None:
        version = getattr(getattr(engine, "vllm", engine), "version", None)
        ladder = make_ladder(sources, request.k, schedule_costs=request.schedule_costs, version=version)
        profiles = (profiles[0], *ladder.profiles)
    workloads = _workloads(request)
    conditions = tuple(
        Condition(workload.name, length, temperature)
        for workload in workloads.values()
        for length in _lengths(request, workload)
        for temperature in options.temperatures(request.temperature)
    )
    if request.input_tokens is not None:
        lengths = tuple(condition.input_tokens for condition in conditions)
        require_lengths(lengths, workloads.values(), request.seed)
        require_room(lengths, profiles, request.server_args, LONGEST if engine.simulated else None)
    _check_refine(request)
    plan = SweepPlan(
        profiles=tuple(profile.name for profile in profiles),
        conditions=conditions,
        levels=options.levels(request.levels or _default_levels(request)),
        repeats=_repeats(request),
        seed=request.seed,
        order=_order(request, engine),
        sessions=_positive(request.sessions, "--sessions", MOST_REPEATS),
        shape=_shape(request, simulated=engine.simulated),
        sampling=Sampling(seed=request.seed, ignore_eos=request.ignore_eos),
        max_tokens=_max_tokens(request),
        extension=request.extension,
    )
    return Experiment(
        plan,
        profiles,
        workloads,
        (*warnings, *ladder.warnings, *workload_notes(workloads.values()), *advice(request.workers)),
        sources=sources if ladder.profiles else (),
        ladder=ladder.arms or {},
    )


def require_startable(engine: Engine, experiment: Experiment, request: SweepRequest) -> None:
    """UsageError for what no server could start with, before a run folder is made."""
    from loadgen.engines.url import UrlEngine
    from loadgen.simulator.hardware_file import find_hardware

    if isinstance(engine, UrlEngine):
        engine.require(experiment.plan.profiles)
    if engine.simulated and request.hardware:
        find_hardware(request.hardware)
    plan, level = experiment.plan, max(experiment.plan.levels)
    require_carried(level, request.workers, "--levels")
    requests = max(plan.shape.min_requests, plan.shape.requests_per_worker * level)
    require_prompts(experiment.workloads.values(), plan.seed, level, max(20, 2 * (requests + level)))


def start_requests(experiment: Experiment, request: SweepRequest, folder: RunFolder) -> dict[str, StartRequest]:
    """How each profile's server starts; writes the config files into the run folder."""
    environment = server_variables(request.server_env)
    requests: dict[str, StartRequest] = {}
    for source in experiment.sources:
        # `--resume` and `verify` derive from it again.
        folder.profile_path(source.name).write_text(dump_profile(source), encoding="utf-8")
    for profile in experiment.profiles:
        path = folder.profile_path(profile.name)
        path.write_text(dump_profile(profile), encoding="utf-8")
        requests[profile.name] = StartRequest(
            profile=replace(profile, path=path),
            config_path=path,
            log_path=folder.log_path(profile.name),
            model=request.model,
            extra_args=request.server_args,
            environment=environment,
            start_timeout_s=request.start_timeout_s,
            together=experiment.plan.order == "together",
        )
    return requests


def make_manifest(
    run_id: str, experiment: Experiment, request: SweepRequest, engine: Engine, engine_reason: str
) -> Manifest:
    """manifest.json's content."""
    plan = experiment.plan
    speculating = [profile for profile in experiment.profiles if profile.speculative]
    return Manifest(
        run_id=run_id,
        created_at=utc_now(),
        loadgen_version=__version__,
        argv=tuple(sys.argv[1:]),
        engine=engine.name,
        engine_reason=engine_reason,
        simulated=engine.simulated,
        profiles=plan.profiles,
        against=request.against,
        methods={profile.name: profile.method for profile in experiment.profiles},
        num_speculative_tokens={p.name: p.speculative.num_speculative_tokens for p in speculating if p.speculative},
        conditions=plan.conditions,
        levels=plan.levels,
        repeats=plan.repeats,
        sessions=plan.sessions,
        seed=plan.seed,
        quick=request.quick,
        order=plan.order,
        sampling=builtins(plan.sampling),
        hardware=_hardware(request, engine),
        settings={"plan": builtins(plan), "request": builtins(request), LADDER: builtins(experiment.ladder)}
        | ({"looks": LOOKS} if request.refine else {}),
    )


def _workloads(request: SweepRequest) -> dict[str, Workload]:
    names = options.names(request.workload, "--workload")
    chosen = [chosen_workload(name, request.input_lengths, request.output_lengths) for name in names]
    return {workload.name: workload for workload in chosen}


def _check_refine(request: SweepRequest) -> None:
    options.share(request.half_width, "--half-width")
    if not request.refine and request.half_width != SweepRequest.half_width:
        raise UsageError("--half-width is the width at which --refine stops; give both, or neither.")
    if request.budget is not None:
        options.seconds(request.budget, "--budget")
        if not request.refine:
            raise UsageError("--budget bounds the time of --refine; give both, or neither.")
    if request.refine and request.quick:
        raise UsageError("--refine asks for an interval and --quick does without one; give one of them.")


def _lengths(request: SweepRequest, workload: Workload) -> tuple[int, ...]:
    if request.input_tokens is None:
        return (workload.default_input_tokens,)
    if request.input_lengths is not None:
        raise UsageError("--input-tokens and --input-lengths are two ways to say the same: give one of them.")
    return options.counts(request.input_tokens, "--input-tokens")


def _default_levels(request: SweepRequest) -> str:
    if request.slow_engine:
        return "1,4" if request.quick else LEVELS_CPU
    return LEVELS_QUICK if request.quick else LEVELS


def _repeats(request: SweepRequest) -> int:
    if request.repeats is not None:
        return _positive(request.repeats, "--repeats", MOST_REPEATS)
    if request.refine:
        # Refining repeats what decides; a first pass only has to show where that is.
        return 1
    return 2 if request.quick else 3


def _max_tokens(request: SweepRequest) -> int | None:
    if request.max_tokens is not None:
        return _positive(request.max_tokens, "--max-tokens", options.MOST_TOKENS)
    return 64 if request.slow_engine or request.quick else None


def _order(request: SweepRequest, engine: Engine) -> str:
    if request.order is None:
        return "together" if engine.can_run_together else ("alternate" if request.sessions > 1 else "blocks")
    known = ("together", "blocks", "alternate")
    if request.order not in known:
        raise UsageError(f"--order {request.order} is unknown; the known ones are {', '.join(known)}.")
    return request.order


def _shape(request: SweepRequest, *, simulated: bool) -> CellShape:
    options.span(request.start_timeout_s, "--start-timeout", 1, 86400)
    if request.window_s is not None:
        options.span(request.window_s, "--window", 0.2, 3600)
    default = 20.0 if request.slow_engine else (1.0 if request.quick else 2.5)
    window_s = request.window_s if request.window_s is not None else default
    # A quick run, or a window that was asked for, stays as long as it says.
    window_requests = 0.0 if request.quick or request.window_s is not None else CellShape.window_requests
    least, per_worker = CellShape.min_requests, 0
    if not (simulated or request.quick or request.window_s is not None):
        least, per_worker = 20, 4
    return CellShape(
        window_s=window_s,
        window_requests=window_requests,
        min_requests=least,
        requests_per_worker=per_worker,
        max_window_s=max(60.0, 4 * window_s),
        settle_requests=0.0 if request.quick else CellShape.settle_requests,
    )


def _positive(value: int, option: str, most: int) -> int:
    if not 1 <= value <= most:
        raise UsageError(f"{option} is {short(value)}; give a whole number from 1 to {most}.")
    return value


def _hardware(request: SweepRequest, engine: Engine) -> dict[str, object]:
    from loadgen.simulator.hardware import DEFAULT_HARDWARE

    facts: dict[str, object] = {
        "cpus": os.cpu_count(),
        "machine": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }
    if engine.simulated:
        facts["preset"] = request.hardware or DEFAULT_HARDWARE
    return facts
