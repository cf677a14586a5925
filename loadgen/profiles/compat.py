"""Preflight: does a profile fit this vLLM version, this model and this machine?"""

from collections.abc import Iterator

from loadgen.errors import UsageError
from loadgen.profiles import versions as v
from loadgen.profiles.model import ServerProfile, SpeculativeConfig
from loadgen.profiles.pairs import is_same_model, targets_of
from loadgen.profiles.speculative import SCHEDULE
from loadgen.profiles.versions import Version, parse_version, version_text

_MODEL_DRAFTS = frozenset({"eagle", "eagle3", "mtp", "draft_model", "dflash"})


def check_profile(
    profile: ServerProfile,
    *,
    vllm_version: str | None,
    model: str | None,
    tensor_parallel_size: int = 1,
    max_num_seqs: int | None = None,
    device: str | None = None,
) -> list[str]:
    """Warnings, one sentence each; empty if there is nothing to say.

    Raises UsageError (one sentence with the cure) for what would not start, would end the engine, or would measure
    nonsense. `vllm_version` None leaves the checks by version out. `device` is `cpu` for the CPU build. A value in the
    profile itself (`tensor-parallel-size`, `max-num-seqs`, `model`) wins over the argument.
    """
    warnings = list(profile.notes)
    version = parse_version(vllm_version) if vllm_version else None
    if vllm_version and version is None:
        warnings.append(f"vLLM's version {vllm_version!r} is none that loadgen can read, so nothing was checked by it.")
    if version and version < v.OLDEST_KNOWN:
        raise UsageError(f"vLLM {version_text(version)} is older than 0.10, the oldest that loadgen knows; update it.")
    if version and version[:2] > v.NEWEST_KNOWN[:2]:
        warnings.append(
            f"vLLM {version_text(version)} is newer than 0.32, the newest that loadgen was checked against."
        )
    spec = profile.speculative
    if spec is None:
        return warnings
    _check_model(profile, spec, str(profile.settings.get("model") or model or ""))
    _check_draft_parallel(profile, spec, _number(profile, "tensor-parallel-size") or tensor_parallel_size)
    if version:
        _check_release(profile, spec, version)
    if device == "cpu":
        _check_cpu(profile, spec, version)
    warnings += _method_warnings(spec, version)
    if spec.schedule:
        warnings += _schedule_warnings(profile, spec, version, _number(profile, "max-num-seqs") or max_num_seqs)
    return warnings


def _number(profile: ServerProfile, key: str) -> int | None:
    value = profile.settings.get(key, profile.settings.get(key.replace("-", "_")))
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _check_model(profile: ServerProfile, spec: SpeculativeConfig, model: str) -> None:
    targets = targets_of(spec.draft_model)
    if not model or not targets or any(is_same_model(model, target) for target in targets):
        return
    raise UsageError(
        f"Profile {profile.name}: the draft {spec.draft_model} belongs to {targets[0]}, not to {model}; "
        f"set MODEL={targets[0]} or take a profile whose draft fits (ngram and suffix fit any model)."
    )


def _check_draft_parallel(profile: ServerProfile, spec: SpeculativeConfig, target: int) -> None:
    draft = spec.raw.get("draft_tensor_parallel_size")
    if draft is not None and draft not in (1, target):
        choices = "1" if target == 1 else f"1 or {target}"
        raise UsageError(
            f"Profile {profile.name}: draft_tensor_parallel_size is {draft} and the target's tensor-parallel-size "
            f"{target}; vLLM takes only {choices} here."
        )


def _check_release(profile: ServerProfile, spec: SpeculativeConfig, version: Version) -> None:
    since = v.METHOD_SINCE.get(spec.method)
    if since and version < since:
        raise UsageError(
            f"Profile {profile.name}: method {spec.method} came with vLLM {version_text(since)} and the server has "
            f"{version_text(version)}; update vLLM or take another profile."
        )
    for field, first in v.FIELD_SINCE.items():
        if spec.raw.get(field) is not None and version < first:
            cure = "route high load to a server without speculation" if field == SCHEDULE else "remove it"
            raise UsageError(
                f"Profile {profile.name}: {field} came with vLLM {version_text(first)} and the server has "
                f"{version_text(version)}; update vLLM or {cure}."
            )


def _check_cpu(profile: ServerProfile, spec: SpeculativeConfig, version: Version | None) -> None:
    if spec.method == "ngram_gpu":
        raise UsageError(f"Profile {profile.name}: ngram_gpu needs a GPU; take profile ngram on the CPU build.")
    if spec.method == "dspark":
        raise UsageError(f"Profile {profile.name}: dspark needs model runner V2, which the CPU build has not.")
    if spec.synthetic_acceptance_rates is not None:
        raise UsageError(
            f"Profile {profile.name}: synthetic acceptance ends the CPU build at its first request; use a GPU, or a "
            "draft that never matches."
        )
    since = v.CPU_EAGLE_SINCE if spec.method in ("eagle", "eagle3") else v.CPU_SPECULATION_SINCE
    if version and version < since:
        raise UsageError(
            f"Profile {profile.name}: the CPU build speculates with {spec.method} from vLLM {version_text(since)} on "
            f"and this is {version_text(version)}; update it."
        )


def _method_warnings(spec: SpeculativeConfig, version: Version | None) -> Iterator[str]:
    if _loses_async(spec.method, version):
        yield (
            f"vLLM switches async scheduling off for {spec.method}, so that part of its cost is not drafting; profile "
            "baseline-sync shows how much."
        )
    if spec.method == "suffix":
        yield "suffix needs arctic-inference==0.1.1 in the server's environment, or the server ends at its start."
        yield "suffix learns from earlier requests, so that the order of the prompts matters; servers are restarted."
    if spec.num_speculative_tokens > v.MAX_DRAFT_TOKENS:
        yield f"num_speculative_tokens is above {v.MAX_DRAFT_TOKENS}, the room of vLLM's rejection sampler; lower it."
    if spec.draft_model and not targets_of(spec.draft_model):
        yield f"loadgen does not know which model the draft {spec.draft_model} belongs to; check its model card."


def _loses_async(method: str, version: Version | None) -> bool:
    if version is None:
        return method in v.ASYNC_OFF_METHODS
    if version < v.ASYNC_SCHEDULING_BY_DEFAULT:
        return False
    last = v.ASYNC_OFF_UP_TO.get(method)
    return method in v.ASYNC_OFF_METHODS or (last is not None and version[:2] <= last[:2])


def _schedule_warnings(
    profile: ServerProfile, spec: SpeculativeConfig, version: Version | None, max_num_seqs: int | None
) -> Iterator[str]:
    schedule = spec.schedule or ()
    parallel = _number(profile, "data-parallel-size") or 1
    if parallel > 1:
        raise UsageError(
            f"Profile {profile.name}: vLLM drops the schedule when data-parallel-size is {parallel} (0.24 and 0.25 can "
            f"hang instead); remove {SCHEDULE} or run one server per replica."
        )
    if spec.method == "ngram_gpu":
        yield from _ngram_gpu_schedule(profile, version)
    elif spec.method in _MODEL_DRAFTS and version and _runner_ignores_schedule(version):
        yield (
            f"If vLLM {version_text(version)} runs {spec.method} on model runner V2 (its log says so), it drafts the "
            "full K whatever the schedule says; set VLLM_USE_V2_MODEL_RUNNER=0 (its graphs are then PIECEWISE) or "
            "update to 0.32."
        )
    if spec.method not in _MODEL_DRAFTS | {"ngram", "ngram_gpu"}:
        yield f"vLLM has tested schedules with EAGLE, EAGLE-3 and DFlash only; verify it with {spec.method}."
    last = schedule[-1]
    if max_num_seqs is not None and last[1] < max_num_seqs:
        yield (
            f"The schedule ends at {last[1]} and max-num-seqs is {max_num_seqs}; vLLM goes on with K = {last[2]} "
            "up to there."
        )


def _runner_ignores_schedule(version: Version) -> bool:
    return v.RUNNER_V2_BY_DEFAULT <= version < v.SCHEDULE_HEEDED_BY_RUNNER_V2


def _ngram_gpu_schedule(profile: ServerProfile, version: Version | None) -> Iterator[str]:
    # Model runner V1's ngram_gpu asserts K = maximum; V2, the default from 0.25 on, drafts K = maximum and trims.
    if version and version < v.RUNNER_V2_BY_DEFAULT:
        raise UsageError(
            f"Profile {profile.name}: ngram_gpu with a schedule ends vLLM {version_text(version)}'s engine at the "
            f"first step whose K differs; remove {SCHEDULE} or take method ngram."
        )
    yield (
        "ngram_gpu with a schedule ends the engine on model runner V1, and on V2 it drafts the full K and throws the "
        "rest away; method ngram heeds the schedule."
    )
