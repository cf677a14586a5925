"""A same-quality test checked and planned, before anything is started."""

from dataclasses import dataclass, replace

from loadgen.analysis.lossless_greedy import TOLERANCES
from loadgen.commands import options
from loadgen.commands.sweep_setup import Experiment, SweepRequest, make_experiment
from loadgen.engines.base import Engine
from loadgen.engines.choose import EngineRequest
from loadgen.errors import UsageError
from loadgen.profiles.model import ServerProfile, SpeculativeConfig
from loadgen.sweep.lossless_plan import SAMPLING_CONCURRENCY, WIDE, LosslessPlan
from loadgen.sweep.lossless_seeds import decide_seeds


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
    seeds: str = "auto"


def check_request(asked: LosslessRequest) -> None:
    """UsageError for an option that means nothing."""
    if asked.dtype is not None and asked.dtype not in TOLERANCES:
        raise UsageError(f"--dtype {asked.dtype} is unknown; the known ones are {', '.join(TOLERANCES)}.")
    if not 0 < asked.margin < 1:
        raise UsageError(f"--margin {asked.margin:g} is out of range; give a share between 0 and 1, such as 0.1.")
    decide_seeds(asked.seeds, {}, simulated=False)


def prepare_experiment(asked: LosslessRequest, engine: Engine) -> Experiment:
    """The profiles and the workload; UsageError for what cannot be tested."""
    experiment = make_experiment(replace(asked.sweep, slow_engine=is_slow(engine)), engine)
    profile_to_test(experiment)
    return experiment


def profile_to_test(experiment: Experiment) -> ServerProfile:
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


def make_plan(asked: LosslessRequest, experiment: Experiment, engine: Engine) -> LosslessPlan:
    """The plan as far as it is known before a server is up: tolerance and seeds depend on what the servers tell."""
    profile = profile_to_test(experiment)
    assert profile.speculative is not None
    slow = is_slow(engine)
    return LosslessPlan(
        profile=profile.name,
        against=experiment.plan.profiles[0],
        k=profile.speculative.num_speculative_tokens,
        temperatures=tuple(t for t in options.temperatures(asked.sweep.temperature) if t > 0),
        samples=asked.samples or (300 if slow else 1500),
        prefixes=asked.prefixes,
        margin=asked.margin,
        wide=8 if slow else WIDE,
        concurrency=_drafting_concurrency(profile.speculative),
        seed=asked.sweep.seed,
    )


def prompt_count(asked: LosslessRequest, engine: Engine) -> int:
    """Prompts of the greedy part."""
    return asked.prompts or (16 if is_slow(engine) else 40)


def is_slow(engine: Engine) -> bool:
    """True for a real vLLM on a CPU."""
    return bool(getattr(engine, "slow", False))


def _drafting_concurrency(speculative: SpeculativeConfig) -> int:
    """Requests in flight while sampling: many, but no more than the schedule drafts for."""
    drafting = [last for _, last, k in speculative.schedule or () if k > 0]
    return max(1, min([SAMPLING_CONCURRENCY, *([max(drafting)] if drafting else [])]))
