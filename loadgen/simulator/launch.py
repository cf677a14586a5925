"""From a profile and options to a server that is ready to listen: core, API process, texts, facts."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loadgen.errors import UsageError
from loadgen.profiles.model import ServerProfile
from loadgen.profiles.speculative import SCHEDULE
from loadgen.profiles.versions import Version, parse_version, version_text
from loadgen.simulator.bugs import Bug, with_bug
from loadgen.simulator.config import DEFAULT_VERSION, EngineConfig, engine_config
from loadgen.simulator.core import SimulatedCore
from loadgen.simulator.cost import ApiProcess
from loadgen.simulator.hardware import DEFAULT_HARDWARE
from loadgen.simulator.hardware_file import find_hardware
from loadgen.simulator.model import SimRequest
from loadgen.simulator.noise import MILD, QUIET, Noise
from loadgen.simulator.server import Answers
from loadgen.simulator.serverspec import ServerSpec
from loadgen.simulator.stream import key_of
from loadgen.simulator.text import Continuation, TextModel, with_flips

SPEC_METRICS_SINCE: Version = (0, 29, 0)  # PR 48915

NOISES: Mapping[str, Noise] = {
    "off": QUIET,
    "on": MILD,
    # What a shared machine shows on a bad day: servers that differ by 3 %, every tenth 3 s slower by 30 %.
    "rough": dataclasses.replace(MILD, jitter=0.04, start_effect=0.03, slow_share=0.1),
    # Half of the near ties turn with the batch's shape, as without batch-invariant kernels.
    "flips": dataclasses.replace(MILD, flip_share=0.5),
}


@dataclass(frozen=True)
class LaunchOptions:
    """What the command line adds to a profile; None leaves the profile's value or vLLM's default."""

    hardware: str = DEFAULT_HARDWARE
    model: str | None = None
    seed: int = 0
    start: int = 0
    noise: str = "on"
    max_num_seqs: int | None = None
    max_model_len: int | None = None
    version: str = DEFAULT_VERSION
    """vLLM's, as `/version` says it: what the engine overrides and which fields it knows follow from it."""
    force_v1: bool = False
    """As VLLM_USE_V2_MODEL_RUNNER=0."""
    bug: str | None = None
    """A planted bug, as `Bug.parse` takes it."""


@dataclass(frozen=True)
class Launch:
    """The parts of one server."""

    core: SimulatedCore
    times: ApiProcess
    answers: Answers
    spec: ServerSpec


def whole_version(text: str) -> str:
    """`0.26.0` of `0.26`; UsageError for what is no version."""
    version = parse_version(text)
    if version is None:
        raise UsageError(f"--vllm-version {text!r} is no version; write it like 0.26 or 0.26.0.")
    return version_text(version)


def known(name: str, choices: Mapping[str, Any], option: str) -> Any:
    """The choice of that name; UsageError with the known ones."""
    if name not in choices:
        raise UsageError(f"There is no {option} {name!r}; choose one of {', '.join(choices)}.")
    return choices[name]


def launch(profile: ServerProfile, options: LaunchOptions) -> Launch:
    """The parts of a server for this profile; UsageError for what vLLM refuses at the start."""
    hardware = find_hardware(options.hardware)
    base: Noise = known(options.noise, NOISES, "noise")
    config = _effective_config(profile, options)
    noise = dataclasses.replace(base, seed=key_of(options.seed, options.start, profile.name) >> 1)
    text = TextModel()
    bug = Bug.parse(options.bug) if options.bug else None
    if bug is not None and config.method == "suffix":
        raise UsageError("--bug needs drafts that follow from one request; take an n-gram or a model-draft profile.")
    core = SimulatedCore(config, hardware, noise=noise, text=text, bug=bug)
    if core.pool.total * config.block_size < config.max_model_len:
        raise UsageError(
            f"The KV cache of {hardware.name} holds {core.pool.total * config.block_size} tokens, fewer than "
            f"max-model-len {config.max_model_len}; set a smaller --max-model-len."
        )
    return Launch(core, ApiProcess(hardware), _answers(text, noise, config, bug), _spec(profile, config, core, options))


def with_options(profile: ServerProfile, options: LaunchOptions) -> ServerProfile:
    """The profile with the command line's settings over the file's, as vLLM takes them."""
    given = {
        "model": options.model,
        "served-model-name": options.model,
        "max-num-seqs": options.max_num_seqs,
        "max-model-len": options.max_model_len,
    }
    # vLLM takes max_num_seqs and max-num-seqs alike.
    stated = {name.replace("_", "-"): value for name, value in profile.settings.items()}
    settings = {**stated, **{name: value for name, value in given.items() if value is not None}}
    return dataclasses.replace(profile, settings=settings)


def _effective_config(profile: ServerProfile, options: LaunchOptions) -> EngineConfig:
    try:
        return engine_config(with_options(profile, options), version=options.version, force_v1=options.force_v1)
    except ValueError as error:
        raise UsageError(f"vLLM would not start with {profile.name}: {error}.") from error


def _answers(text: TextModel, noise: Noise, config: EngineConfig, bug: Bug | None) -> Answers:
    def answer(request: SimRequest) -> Continuation:
        found = text.continuation(request.prompt_token_ids, temperature=request.temperature, seed=request.seed)
        if noise.flip_share > 0:
            found = with_flips(text, found, noise.flip_share, f"{noise.seed}/{config.method}")
        if bug is not None:
            found = with_bug(text, found, config, bug, request.max_tokens)
        return found

    return answer


def _spec(profile: ServerProfile, config: EngineConfig, core: SimulatedCore, options: LaunchOptions) -> ServerSpec:
    profile = with_options(profile, options)
    metrics = profile.settings.get("per-request-spec-decode-metrics")
    if metrics not in (None, "summary", "detailed"):
        raise UsageError(f"per-request-spec-decode-metrics is {metrics!r}; set it to summary or detailed.")
    if metrics and (parse_version(options.version) or SPEC_METRICS_SINCE) < SPEC_METRICS_SINCE:
        raise UsageError(
            f"per-request-spec-decode-metrics came with vLLM {version_text(SPEC_METRICS_SINCE)} and this is "
            f"{options.version}; remove it."
        )
    if metrics and config.k == 0:
        raise UsageError("per-request-spec-decode-metrics needs a speculative-config; remove it or add one.")
    effective = {
        name: value for name, value in dataclasses.asdict(config).items() if name not in ("notes", "capture_sizes")
    }
    speculative = dict(profile.speculative.raw) if profile.speculative else None
    if speculative and config.schedule is None:
        speculative.pop(SCHEDULE, None)
    return ServerSpec(
        model_id=config.served_model_name,
        root=config.model,
        max_model_len=config.max_model_len,
        version=config.version,
        num_speculative_tokens=config.k,
        spec_metrics=metrics,
        block_size=config.block_size,
        num_gpu_blocks=core.pool.total,
        kv_cache_memory_bytes=int(core.pool.total * config.block_size * core.hardware.kv_bytes_per_token),
        gpu_memory_utilization=config.gpu_memory_utilization,
        prefix_caching=config.prefix_caching,
        effective={
            **effective,
            "speculative_config": speculative,
            "max_cudagraph_capture_size": max(config.capture_sizes, default=0),
            "hardware": core.hardware.name,
            "noise": options.noise,
            "force_v1": options.force_v1,
            "simulated": True,
            "enable_server_load_tracking": bool(profile.settings.get("enable-server-load-tracking")),
        },
    )
