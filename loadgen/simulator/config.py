"""What one simulated engine runs with: a profile's settings, vLLM's defaults, and what vLLM overrides."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loadgen.profiles.model import BatchSchedule, ServerProfile, SpeculativeConfig
from loadgen.profiles.values import AUTO, whole
from loadgen.profiles.versions import (
    FIELD_SINCE,
    METHOD_SINCE,
    OLDEST_KNOWN,
    parse_version,
    version_text,
)
from loadgen.simulator.schedule import dense_schedule

DEFAULT_VERSION = "0.32.0"
DEFAULT_MODEL = "Qwen/Qwen3-8B"
MODEL_DRAFTS = frozenset({"eagle", "eagle3", "mtp", "draft_model", "medusa", "dflash", "dspark"})
"""Methods whose drafts come from a model: acceptance is drawn, not matched."""
NGRAM_METHODS = frozenset({"ngram", "ngram_gpu"})

_SYNC_METHODS = frozenset({"ngram", "suffix", "medusa", "mlp_speculator", "custom_class"})
_RUNNER_V1_METHODS = frozenset({"ngram", "suffix", "medusa", "custom_class"})
_BLOCK_DROP_METHODS = frozenset({"eagle", "eagle3", "mtp", "dflash", "dspark"})
_LONGEST = 32768
_FULL_GRAPHS, _PIECEWISE, _EAGER = "FULL_AND_PIECEWISE", "PIECEWISE", "NONE"


@dataclass(frozen=True)
class EngineConfig:
    """The effective configuration of one engine, after vLLM's own overrides."""

    name: str
    model: str = DEFAULT_MODEL
    served_model_name: str = DEFAULT_MODEL
    version: str = DEFAULT_VERSION
    method: str = "none"
    k: int = 0
    lookup_min: int = 0
    lookup_max: int = 0
    schedule: tuple[int, ...] | None = None
    """K by number of scheduled requests (index 0 unused); None = always `k`."""
    synthetic_rates: tuple[float, ...] | None = None
    """Unconditional acceptance rate per position, as vLLM means them."""
    suffix_max_tree_depth: int = 24
    suffix_max_cached_requests: int = 10000
    suffix_max_spec_factor: float = 1.0
    suffix_min_token_prob: float = 0.1
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    max_model_len: int = _LONGEST
    block_size: int = 16
    gpu_memory_utilization: float = 0.9
    num_gpu_blocks: int | None = None
    async_scheduling: bool = True
    graph_mode: str = _FULL_GRAPHS
    capture_sizes: tuple[int, ...] = ()
    prefix_caching: bool = True
    runner: str = "V2"
    drafts_full_k: bool = False
    """Runner V2 before 0.32 ignores the schedule while drafting: all K are paid, fewer are verified."""
    dies_on_dynamic_k: bool = False
    """A step that picks another K than `k` kills the engine (AssertionError in vLLM)."""
    data_parallel_size: int = 1
    drop_cached_block: bool = False
    """Eagle-like drafters recompute the last block of a prefix-cache hit."""
    notes: tuple[str, ...] = ()
    """What vLLM overrode, as its log says it."""

    def k_for(self, scheduled_requests: int) -> int:
        """The K that a step with so many scheduled requests picks for the drafts it makes."""
        if self.schedule is None:
            return self.k
        return self.schedule[min(scheduled_requests, len(self.schedule) - 1)]


def engine_config(
    profile: ServerProfile,
    *,
    shared: Mapping[str, Any] | None = None,
    version: str = DEFAULT_VERSION,
    force_v1: bool = False,
) -> EngineConfig:
    """The effective configuration of a profile; `shared` settings (dashed keys) yield to the profile's own. `force_v1`:
    VLLM_USE_V2_MODEL_RUNNER=0.

    ValueError for what this vLLM refuses at engine start: a malformed schedule, a method or field that came later.
    """
    settings = {**(shared or {}), **{name.replace("_", "-"): value for name, value in profile.settings.items()}}
    spec = profile.speculative
    method = spec.method if spec else "none"
    _require_known(spec, version)
    schedule, parallel, parallel_note = _schedule(spec, settings)
    v1 = force_v1 or method in _RUNNER_V1_METHODS or _release(version) < (0, 25)
    # Seen with 0.26 on an H200: draft_model fell back to runner V1 without async scheduling (h200.md, lesson 6).
    v1 = v1 or (method == "draft_model" and _release(version) < (0, 27))
    max_num_seqs = int(settings.get("max-num-seqs", 256))
    model = str(settings.get("model", settings.get("model-tag", DEFAULT_MODEL)))
    raw = spec.raw if spec else {}
    graph_mode, notes = _graph_mode(settings, dynamic=bool(schedule), v1=v1)
    asynchronous, async_note = _async_scheduling(settings, method, version, v1_draft=v1 and method == "draft_model")
    k = spec.num_speculative_tokens if spec else 0
    budget = whole(settings.get("max-num-batched-tokens", 8192)) or 1
    if method == "draft_model":
        budget = max(1, budget - max_num_seqs)  # one drafting slot per request is taken off (vllm-facts part 1)
    return EngineConfig(
        name=profile.name,
        model=model,
        served_model_name=_first(settings.get("served-model-name"), model),
        version=version,
        method=method,
        k=k,
        **_lookup_window(raw, method),
        schedule=dense_schedule(schedule, k, max_num_seqs) if schedule else None,
        synthetic_rates=_synthetic_rates(spec, k),
        suffix_max_tree_depth=int(raw.get("suffix_decoding_max_tree_depth", 24)),
        suffix_max_cached_requests=int(raw.get("suffix_decoding_max_cached_requests", 10000)),
        suffix_max_spec_factor=float(raw.get("suffix_decoding_max_spec_factor", 1.0)),
        suffix_min_token_prob=float(raw.get("suffix_decoding_min_token_prob", 0.1)),
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=budget,
        max_model_len=_model_length(settings.get("max-model-len", _LONGEST)),
        block_size=int(settings.get("block-size", 16)),
        gpu_memory_utilization=float(settings.get("gpu-memory-utilization", 0.9)),
        num_gpu_blocks=_optional_int(settings.get("num-gpu-blocks-override")),
        async_scheduling=asynchronous,
        graph_mode=graph_mode,
        capture_sizes=_capture_sizes(settings, max_num_seqs, k),
        prefix_caching=_flag(settings, "enable-prefix-caching", default=True),
        runner="V1" if v1 else "V2",
        drafts_full_k=not v1 and _release(version) < (0, 32),
        dies_on_dynamic_k=method in {"suffix", "medusa"} or (method == "ngram_gpu" and v1),
        drop_cached_block=method in _BLOCK_DROP_METHODS,
        data_parallel_size=parallel,
        notes=(*parallel_note, *notes, *async_note),
    )


def _require_known(spec: SpeculativeConfig | None, version: str) -> None:
    release = parse_version(version)
    if release is None or release < OLDEST_KNOWN:
        raise ValueError(f"the simulator knows vLLM from {version_text(OLDEST_KNOWN)} on, not {version}")
    if spec is None:
        return
    since = METHOD_SINCE.get(spec.method)
    if since and release < since:
        raise ValueError(f"method {spec.method} came with vLLM {version_text(since)} and this is {version}")
    for name, first in FIELD_SINCE.items():
        if spec.raw.get(name) is not None and release < first:
            raise ValueError(f"{name} came with vLLM {version_text(first)} and this is {version}")


def _schedule(
    spec: SpeculativeConfig | None, settings: Mapping[str, Any]
) -> tuple[BatchSchedule | None, int, tuple[str, ...]]:
    """The schedule in force, the data-parallel size, and what vLLM says if it drops the schedule for that."""
    parallel = _optional_int(settings.get("data-parallel-size")) or 1
    schedule = spec.schedule if spec else None
    if spec is None or not schedule or parallel == 1:
        return schedule, parallel, ()
    note = (
        "Dynamic speculative decoding is not supported with data parallelism. Disabling "
        "num_speculative_tokens_per_batch_size and falling back to static "
        f"num_speculative_tokens={spec.num_speculative_tokens}."
    )
    return None, parallel, (note,)


def capture_sizes(limit: int) -> tuple[int, ...]:
    """vLLM's default graph sizes up to a limit: 1, 2, 4, then by 8 below 256, then by 16."""
    sizes = [1, 2, 4, *range(8, 256, 8), *range(256, limit + 1, 16)]
    return tuple(size for size in sizes if size <= limit)


def _capture_sizes(settings: Mapping[str, Any], max_num_seqs: int, k: int) -> tuple[int, ...]:
    compilation = _compilation(settings)
    given = settings.get("cudagraph-capture-sizes", compilation.get("cudagraph_capture_sizes"))
    if given:
        return tuple(sorted(int(size) for size in given))
    limit = settings.get("max-cudagraph-capture-size", compilation.get("max_cudagraph_capture_size"))
    return capture_sizes(int(limit) if limit else min(max_num_seqs * (1 + k) * 2, 512))


def _graph_mode(settings: Mapping[str, Any], *, dynamic: bool, v1: bool) -> tuple[str, tuple[str, ...]]:
    if _flag(settings, "enforce-eager", default=False):
        return _EAGER, ()
    mode = str(_compilation(settings).get("cudagraph_mode", _FULL_GRAPHS)).upper()
    if dynamic and v1 and mode not in {_PIECEWISE, _EAGER}:
        note = (
            f"Overriding cudagraph_mode from {mode} to {_PIECEWISE} for reliability. Use VLLM_USE_V2_MODEL_RUNNER=1 "
            "if you want to use full CUDA graphs."
        )
        return _PIECEWISE, (note,)
    return mode, ()


def _async_scheduling(
    settings: Mapping[str, Any], method: str, version: str, *, v1_draft: bool
) -> tuple[bool, tuple[str, ...]]:
    if method in _SYNC_METHODS or v1_draft:
        note = f"Async scheduling not supported with {method}-based speculative decoding and will be disabled."
        return False, (note,)
    return _flag(settings, "async-scheduling", default=_release(version) >= (0, 14)), ()


def _lookup_window(raw: Mapping[str, Any], method: str) -> dict[str, int]:
    if method not in NGRAM_METHODS:
        return {}
    low, high = raw.get("prompt_lookup_min"), raw.get("prompt_lookup_max")
    if low is None and high is None:
        return {"lookup_min": 5, "lookup_max": 5}
    low, high = low if low is not None else high, high if high is not None else low
    return {"lookup_min": int(low or 1), "lookup_max": int(high or 1)}


def _synthetic_rates(spec: SpeculativeConfig | None, k: int) -> tuple[float, ...] | None:
    if spec is None or spec.synthetic_acceptance_rates is None:
        return None
    rates = tuple(float(rate) for rate in spec.synthetic_acceptance_rates)
    return (rates + (rates[-1] if rates else 0.0,) * k)[:k]


def _compilation(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    value = settings.get("compilation-config", {})
    return value if isinstance(value, Mapping) else {}


def _flag(settings: Mapping[str, Any], name: str, *, default: bool) -> bool:
    if f"no-{name}" in settings:
        return not settings[f"no-{name}"]
    return bool(settings.get(name, default))


def _first(value: Any, default: str) -> str:
    if isinstance(value, list) and value:
        return str(value[0])
    return str(value) if value else default


def _model_length(value: Any) -> int:
    """`auto` is what the default is: a pool that holds less is said at the start."""
    length = whole(value)
    return _LONGEST if length is None or length == AUTO else length


def _optional_int(value: Any) -> int | None:
    return None if value is None else int(value)


def _release(version: str) -> tuple[int, int]:
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else (0, 32)
