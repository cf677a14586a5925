"""What a vLLM version can do about a break-even, and what that costs there."""

from dataclasses import dataclass

from loadgen.profiles.versions import (
    FIELD_SINCE,
    METHOD_SINCE,
    OLDEST_KNOWN,
    RUNNER_V1_UP_TO,
    RUNNER_V2_BY_DEFAULT,
    SCHEDULE_HEEDED_BY_RUNNER_V2,
    SCHEDULE_KILLS_ENGINE,
    Version,
    parse_version,
    version_text,
)

SCHEDULE = "num_speculative_tokens_per_batch_size"
TWO_POOLS = "two_pools"
OLD_SWITCH = "disable_by_batch_size"
RUNNER_V1_METHODS = frozenset({"ngram", "suffix", "medusa"})
"""They put vLLM on model runner V1, whose CUDA graphs become PIECEWISE under a schedule."""
V1_BY_DEFAULT: Version = (0, 8, 0)
"""Before it V0 is the default engine, the only one that ever read `disable_by_batch_size` (issue 25112)."""
V0_METHODS = frozenset({"draft_model", "eagle", "medusa", "mlp_speculator", "mtp", "ngram"})


@dataclass(frozen=True)
class Ability:
    """The setting that does it, and one or two sentences why."""

    setting: str
    reason: str


def ability(method: str, version: str | None, data_parallel: int | None = None) -> Ability:
    """The setting that this method and version can obey: a schedule, two pools behind a router, or V0's old switch
    where V0 is the default engine.

    Source: vLLM's sources 0.10 to 0.32; two pools wherever a schedule is absent, ignored, or ends the engine.
    """
    parsed = parse_version(version) if version else None
    here = f"vLLM {version_text(parsed)}" if parsed else "this vLLM (version unknown)"
    if parsed and parsed < V1_BY_DEFAULT and method in V0_METHODS:
        return Ability(OLD_SWITCH, f"{here} reads it on its default engine, V0; V1 never does.")
    obstacle = _obstacle(method, parsed, here, data_parallel or 1)
    if obstacle:
        return Ability(
            TWO_POOLS,
            f"Because {obstacle}, run one pool with the static config and one without speculation, behind a router "
            "with this threshold.",
        )
    caveats = ["Static servers do not show what a schedule costs: run `loadgen verify` before relying on it."]
    if _on_runner_v1(method, parsed):
        caveats.append(f"{method} runs on model runner V1, which then forces PIECEWISE CUDA graphs.")
    elif parsed and parsed < RUNNER_V2_BY_DEFAULT:
        caveats.append(f"{here} forces PIECEWISE CUDA graphs for it.")
    else:
        caveats.append("K = 0 still runs the draft's prefill.")
    if parsed is None:
        caveats.append("It needs vLLM 0.24 or newer; before, use two pools behind a router.")
    return Ability(SCHEDULE, " ".join(caveats))


def _obstacle(method: str, version: Version | None, here: str, data_parallel: int) -> str | None:
    """Why a schedule does not work here, as a half-sentence; None if it does."""
    if version and version < FIELD_SINCE[SCHEDULE]:
        return _before_schedules(method, version, here)
    if method == "ngram_gpu":
        return "a schedule with ngram_gpu ends the engine or drafts the full K all the same"
    if method in SCHEDULE_KILLS_ENGINE:
        return f"a schedule with {method} ends the engine"
    if data_parallel > 1:
        return "vLLM drops the schedule when data-parallel-size is above 1"
    if (
        version
        and not _on_runner_v1(method, version)
        and RUNNER_V2_BY_DEFAULT <= version < SCHEDULE_HEEDED_BY_RUNNER_V2
    ):
        return (
            f"{here} ignores a schedule on model runner V2, and VLLM_USE_V2_MODEL_RUNNER=0 forces PIECEWISE graphs "
            "(on an H200 they cost more than the schedule saved)"
        )
    return None


def _before_schedules(method: str, version: Version, here: str) -> str:
    if version < OLDEST_KNOWN and method in V0_METHODS:
        return f"V1, the default engine of {here}, never read {OLD_SWITCH} (only V0 does: VLLM_USE_V1=0)"
    if version < OLDEST_KNOWN and version < METHOD_SINCE.get(method, version):
        return f"{here} knows neither {method} nor a schedule"
    return f"{here} has no off-switch (it came with 0.24)"


def _on_runner_v1(method: str, version: Version | None) -> bool:
    """True if vLLM puts the method on model runner V1 by itself."""
    last = RUNNER_V1_UP_TO.get(method)
    return method in RUNNER_V1_METHODS or (
        version is not None and last is not None and RUNNER_V2_BY_DEFAULT <= version <= last
    )
