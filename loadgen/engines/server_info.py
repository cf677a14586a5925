"""What a server in dev mode says of its own configuration at `/server_info`, after all of vLLM's overrides.

vLLM mounts the route with VLLM_SERVER_DEV_MODE=1 only. With `config_format=json` it dumps its VllmConfig, enumerations
by value; without it, and in versions that do not know the parameter, it gives the text that also stands in the log.
Read in the sources of 0.32 and in a dump of its CPU build.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import httpx2

from loadgen.engines.effective import fields_of

TIMEOUT_S = 60.0
"""For the whole answer, however it drips: the first one gathers facts of the machine, which calls other programs."""
SCHEDULE = "num_speculative_tokens_per_batch_size"
_GRAPH_MODES = {0: "NONE", 1: "PIECEWISE", 2: "FULL", (2, 0): "FULL_DECODE_ONLY", (2, 1): "FULL_AND_PIECEWISE"}
_COMPILATION_MODES = {0: "NONE", 1: "STOCK_TORCH_COMPILE", 2: "DYNAMO_TRACE_ONCE", 3: "VLLM_COMPILE"}
_PLACES: tuple[tuple[str, str, str], ...] = (
    ("model", "model_config", "model"),
    ("dtype", "model_config", "dtype"),
    ("max_model_len", "model_config", "max_model_len"),
    ("quantization", "model_config", "quantization"),
    ("enforce_eager", "model_config", "enforce_eager"),
    ("tensor_parallel_size", "parallel_config", "tensor_parallel_size"),
    ("pipeline_parallel_size", "parallel_config", "pipeline_parallel_size"),
    ("data_parallel_size", "parallel_config", "data_parallel_size"),
    ("kv_cache_dtype", "cache_config", "cache_dtype"),
    ("prefix_caching", "cache_config", "enable_prefix_caching"),
    ("kv_cache_tokens", "cache_config", "kv_cache_size_tokens"),
    ("device", "device_config", "device"),
    ("chunked_prefill", "scheduler_config", "enable_chunked_prefill"),
    ("async_scheduling", "scheduler_config", "async_scheduling"),
    ("max_num_seqs", "scheduler_config", "max_num_seqs"),
    ("max_num_batched_tokens", "scheduler_config", "max_num_batched_tokens"),
    ("max_num_scheduled_tokens", "scheduler_config", "max_num_scheduled_tokens"),
    ("graph_mode", "compilation_config", "cudagraph_mode"),
    ("compilation_mode", "compilation_config", "mode"),
    ("max_graph_size", "compilation_config", "max_cudagraph_capture_size"),
)
"""Our name, and where VllmConfig has it."""


async def ask_server_info(client: httpx2.AsyncClient, timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
    """What the server says it runs with, under the names of `effective_from_log`; empty for one that is not in dev
    mode, or whose answer cannot be read. Never raises: this is beside what is measured.
    """
    try:
        async with asyncio.timeout(timeout_s):
            response = await client.get("/server_info", params={"config_format": "json"}, timeout=timeout_s)
        body = response.json() if response.status_code == 200 else None
    # A body nested too deeply is a RecursionError.
    except (httpx2.HTTPError, OSError, ValueError, RecursionError):
        return {}
    return effective_from_info(body) if isinstance(body, Mapping) else {}


def effective_from_info(body: Mapping[str, Any]) -> dict[str, Any]:
    """The answer's facts: those of `_PLACES` as far as they are there, `model_runner` (`v1`, `v2`) where the
    environment sets it, and `speculation`: method, K and schedule as they are in force, None without speculation. What
    has another form than vLLM gives it is unknown and left out.
    """
    config, environment = body.get("vllm_config"), body.get("vllm_env")
    found: dict[str, Any] = {}
    if isinstance(config, str):
        found = fields_of(config)
    elif isinstance(config, Mapping):
        found = _from_config(config)
    if isinstance(environment, Mapping) and (runner := environment.get("VLLM_USE_V2_MODEL_RUNNER")) is not None:
        found["model_runner"] = "v2" if runner in (True, 1, "1") else "v1"
    return found


def _from_config(config: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, section, key in _PLACES:
        part = config.get(section)
        value = part.get(key) if isinstance(part, Mapping) else None
        if value is not None and (read := _READ.get(name, _plain)(value)) is not None:
            found[name] = read
    speculation = config.get("speculative_config", "")
    if speculation is None:
        found["speculation"] = None
    elif isinstance(speculation, Mapping):
        keys = ("method", "num_speculative_tokens", SCHEDULE)
        found["speculation"] = {key: speculation[key] for key in keys if key in speculation}
    return found


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float | bool | str) else None


def _enumeration(names: Mapping[Any, str]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if isinstance(value, list) and all(isinstance(one, int) for one in value):
            return names.get(tuple(value), str(value))
        return names.get(value, str(value)) if isinstance(value, int | str) else None

    return read


_READ: dict[str, Callable[[Any], Any]] = {
    "dtype": lambda value: value.removeprefix("torch.") if isinstance(value, str) else None,
    "graph_mode": _enumeration(_GRAPH_MODES),
    "compilation_mode": _enumeration(_COMPILATION_MODES),
}
