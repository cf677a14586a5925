"""What a verification needs before it starts: the claim, its servers, its loads, its margin. Starts nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadgen.analysis.batchmap import batch_at
from loadgen.analysis.findings import analyse, situation_of
from loadgen.analysis.goal import Goal, goal_of
from loadgen.analysis.model import ConditionFinding
from loadgen.analysis.ratios import MIN_N
from loadgen.analysis.recommendation import advise
from loadgen.analysis.schedule import Choice, standard_error
from loadgen.analysis.verify import attainable_margin
from loadgen.analysis.verify_claim import make_claim, tested_levels
from loadgen.analysis.verify_model import Claim, Role
from loadgen.commands import options
from loadgen.commands.conclude import VERIFY
from loadgen.commands.goal import judged, set_goal
from loadgen.commands.sweep_measure import Job
from loadgen.commands.sweep_setup import Experiment, SweepRequest, make_manifest
from loadgen.commands.workload_options import chosen_workload
from loadgen.engines.base import Engine
from loadgen.engines.choose import EngineRequest, choose_engine
from loadgen.errors import NoVerdictError, UsageError
from loadgen.profiles.derive import with_k, with_schedule
from loadgen.profiles.loader import load_profile
from loadgen.profiles.model import BatchSchedule, ServerProfile
from loadgen.store.codec import builtins, convert
from loadgen.store.folder import RunFolder
from loadgen.store.model import CellResult, Condition, Manifest
from loadgen.sweep.plan import SweepPlan

SEED_STEP = 1_000_003
"""Far from any seed that a person would choose for a run."""
OPEN_LOOP_S = 12.0
OPEN_LOOP_QUICK_S = 6.0
OPEN_LOOP_SLOW_S = 60.0


@dataclass(frozen=True)
class VerifyRequest:
    """What was asked; None = the default for the run and its engine."""

    engine: str | None = None
    url: str | None = None
    margin: float | None = None
    levels: str | None = None
    repeats: int | None = None
    sessions: int | None = None
    window_s: float | None = None
    open_loop_s: float | None = None
    goal: Goal | None = None
    """Another goal than the run's own, which becomes the run's."""


@dataclass(frozen=True)
class Begun:
    """What stands in a verification's manifest from its first moment, so that it can go on after an interrupt."""

    claim: Claim
    margin: float
    margin_reason: str
    rates: tuple[tuple[int, float], ...]
    open_loop_s: float


@dataclass(frozen=True)
class Prepared:
    """A checked verification."""

    job: Job
    claim: Claim
    margin: float
    margin_reason: str
    rates: dict[int, float]
    """Edge → arrivals per second of the open loop; empty without one."""
    open_loop_s: float


def prepare(folder: RunFolder, asked: VerifyRequest, *, as_json: bool) -> Prepared:
    """The verification of a run's advice. NoVerdictError if the run advises nothing, UsageError for what cannot be."""
    check_margin(asked.margin)
    if "request" not in folder.manifest().settings:
        raise UsageError(
            f"{folder.path} was not made by a sweep, so that no server can be started to measure its advice again; "
            "measure the servers with loadgen sweep --url."
        )
    set_goal(folder, asked.goal)
    manifest, cells = folder.manifest(), folder.cells()
    claim, profiles = current_claim(folder)
    engine, reason, wanted = _engine(manifest, asked)
    request = replace(convert(manifest.settings["request"], SweepRequest), quick=manifest.quick, diagnose=False)
    attempt = _make_room(folder)
    plan = _plan(manifest, asked, claim, tuple(p.name for p in profiles), engine, attempt)
    workload = chosen_workload(claim.condition.workload, request.input_lengths, request.output_lengths)
    experiment = Experiment(plan, profiles, {workload.name: workload}, ())
    own = RunFolder(folder.path / VERIFY)
    own.path.mkdir()
    margin, why = _margin(asked, analyse(manifest, cells, folder.servers()).conditions, plan)
    made = make_manifest(f"{folder.run_id}/{VERIFY}", experiment, request, engine, reason)
    length_s = _open_loop_s(asked, manifest, engine)
    rates = _rates(claim, manifest, cells) if length_s else {}
    stored = Begun(claim, margin, why, tuple(rates.items()), length_s)
    own.write_manifest(replace(made, settings=made.settings | {"engine": wanted.stored()} | builtins(stored)))
    job = Job(experiment, request, engine, reason, own, as_json)
    return Prepared(job, claim, margin, why, rates, length_s)


def resume(folder: RunFolder, *, as_json: bool) -> Prepared:
    """The verification that was begun in RUN/verify, as it was begun. UsageError if there is none."""
    own = RunFolder(folder.path / VERIFY)
    if not (own.path / "manifest.json").is_file():
        raise UsageError(f"No verification of {folder.run_id} was begun; start one with loadgen verify {folder.path}.")
    settings = own.manifest().settings
    try:
        begun = convert(settings, Begun)
    except ValueError as error:
        raise UsageError(
            f"{own.path} was begun by another version of loadgen ({error}); start again with "
            f"loadgen verify {folder.path}."
        ) from error
    engine, reason = choose_engine(convert(settings["engine"], EngineRequest))
    request = convert(settings["request"], SweepRequest)
    claim = begun.claim
    profiles = _arms(folder, claim.profile, folder.manifest().against, claim.static_k, claim.schedule)
    workload = chosen_workload(claim.condition.workload, request.input_lengths, request.output_lengths)
    plan = convert(settings["plan"], SweepPlan)
    experiment = Experiment(plan, tuple(profiles.values()), {workload.name: workload}, ())
    job = Job(experiment, request, engine, reason, own, as_json)
    return Prepared(job, claim, begun.margin, begun.margin_reason, dict(begun.rates), begun.open_loop_s)


def begun_claim(folder: RunFolder) -> Claim | None:
    """The claim of the verification in RUN/verify that can be gone on with; None if there is none."""
    path = folder.path / VERIFY
    if not (path / "manifest.json").is_file():
        return None
    try:
        return convert(RunFolder(path).manifest().settings, Begun).claim
    except ValueError:
        return None


def current_claim(folder: RunFolder) -> tuple[Claim, tuple[ServerProfile, ...]]:
    """What the run advises now, as a claim with its servers. NoVerdictError if it advises nothing."""
    manifest, servers = folder.manifest(), folder.servers()
    slo = judged(folder, manifest)
    findings = analyse(manifest, folder.cells(), servers, slo=slo)
    advice = advise(findings.conditions, situation_of(manifest, servers, slo))
    if advice is None:
        raise NoVerdictError(f"{folder.run_id} advises nothing that could be verified yet: {findings.answer}")
    schedule = advice.ranges if advice.can_schedule else ()
    found = _arms(folder, advice.profile, manifest.against, advice.static_k, schedule)
    arms = {role: profile.name for role, profile in found.items()}
    claim = make_claim(advice, arms, goal_of(manifest))
    return claim, tuple(found.values())


def check_margin(margin: float | None) -> None:
    """UsageError for a margin that is no share."""
    if margin is not None and not 0 < margin < 1:
        raise UsageError(f"--margin is {margin:g}; give a share such as 0.02 for 2 %.")


def _engine(manifest: Manifest, asked: VerifyRequest) -> tuple[Engine, str, EngineRequest]:
    wanted = convert(manifest.settings["engine"], EngineRequest)
    if asked.url is not None:
        wanted = replace(wanted, name="url", url=asked.url)
    elif asked.engine is not None:
        wanted = replace(wanted, name=asked.engine)
    engine, reason = choose_engine(wanted)
    return engine, reason, wanted


def _arms(
    folder: RunFolder, name: str, against: str, static_k: int, schedule: BatchSchedule
) -> dict[Role, ServerProfile]:
    """The servers by the role that each plays, no speculation first; one with a schedule only if there is one."""
    kept = folder.path / "profiles"
    source = load_profile(name, kept)
    found = {Role.NONE: load_profile(against, kept), Role.STATIC: with_k(source, static_k)}
    if schedule:
        found[Role.SCHEDULE] = with_schedule(source, schedule)
    return found


def _make_room(folder: RunFolder) -> int:
    """How many verifications there were before; the last one moves aside."""
    earlier = len(list(folder.path.glob(f"{VERIFY}-[0-9]*")))
    last = folder.path / VERIFY
    if last.exists():
        earlier += 1
        last.rename(folder.path / f"{VERIFY}-{earlier}")
    return earlier


def _plan(
    manifest: Manifest,
    asked: VerifyRequest,
    claim: Claim,
    profiles: tuple[str, ...],
    engine: Engine,
    attempt: int,
) -> SweepPlan:
    plan = convert(manifest.settings["plan"], SweepPlan)
    seed = manifest.seed + SEED_STEP * (attempt + 1)
    # Where a start costs a second, every repeat gets its own: the verdict then holds for starts to come.
    cheap = engine.simulated and not manifest.quick
    sessions = asked.sessions or (MIN_N if cheap else 1)
    repeats = asked.repeats or (1 if sessions >= MIN_N else max(manifest.repeats, 2 if manifest.quick else MIN_N))
    levels = options.levels(asked.levels) if asked.levels else manifest.levels
    shape = plan.shape
    if asked.window_s is not None:
        options.span(asked.window_s, "--window", 0.2, 3600)
        shape = replace(shape, window_s=asked.window_s, max_window_s=max(shape.max_window_s, 4 * asked.window_s))
    # The same servers fitted beside each other before, if they were up together by the user's will.
    together = engine.can_run_together or (plan.order == "together" and not asked.engine and not asked.url)
    order = "together" if together else ("alternate" if sessions > 1 else "blocks")
    return replace(
        plan,
        profiles=profiles,
        conditions=(claim.condition,),
        levels=tested_levels(levels, claim.edges),
        repeats=repeats,
        sessions=sessions,
        seed=seed,
        order=order,
        sampling=replace(plan.sampling, seed=seed),
        shape=shape,
    )


def _margin(asked: VerifyRequest, conditions: Sequence[ConditionFinding], plan: SweepPlan) -> tuple[float, str]:
    if asked.margin is not None:
        return asked.margin, "as asked"
    spreads = [
        (error * level.speedup.n**0.5, level.speedup.n - 1)
        for condition in conditions
        for profile in condition.profiles
        for level in profile.levels
        if level.valid and level.speedup is not None and (error := standard_error(level.speedup)) is not None
    ]
    repeats = plan.repeats * plan.sessions
    margin = attainable_margin(spreads, repeats, len(plan.levels))
    if not spreads:
        return margin, "assumed: fewer than three repeats of the run do not tell its spread"
    known = f"the spread of {len(spreads)} measured speed-ups"
    return (
        margin,
        f"what {repeats} repeats at {len(plan.levels)} loads can tell with 80 % power, by {known}; from 2 to 10 %",
    )


def _open_loop_s(asked: VerifyRequest, manifest: Manifest, engine: Engine) -> float:
    if asked.open_loop_s is not None:
        if asked.open_loop_s < 0:
            raise UsageError(f"--open-loop is {asked.open_loop_s:g}; give seconds, or 0 for none.")
        return asked.open_loop_s
    if getattr(engine, "slow", False):
        return OPEN_LOOP_SLOW_S
    return OPEN_LOOP_QUICK_S if manifest.quick else OPEN_LOOP_S


def _rates(claim: Claim, manifest: Manifest, cells: Sequence[CellResult]) -> dict[int, float]:
    """Requests per second that the run saw at each edge, log–log between its levels: with so many arrivals, so many
    are in flight (Little 1961).
    """
    if claim.choice is not Choice.SCHEDULE:
        return {}
    known = _request_rates(claim.condition, manifest, cells)
    return {edge: batch_at(known, edge) for edge in claim.edges} if known else {}


def _request_rates(
    condition: Condition, manifest: Manifest, cells: Sequence[CellResult]
) -> list[tuple[int, float | None]]:
    """(level, requests/s) by output tokens, counted finer than requests; of the baseline."""
    by_level: dict[int, list[float]] = {}
    for cell in cells:
        if cell.key.profile == manifest.against and cell.key.condition == condition and cell.output_tokens.mean:
            by_level.setdefault(cell.key.level, []).append(cell.output_tokens_per_s / cell.output_tokens.mean)
    return [(level, sum(found) / len(found)) for level, found in sorted(by_level.items())]
