"""What a server really runs with, as its log tells: graph mode, async scheduling, model runner, overrides.

The lines are vLLM's own; the wording was read in the sources of 0.24 to 0.32 and in logs of 0.26 and 0.32.
"""

import re
from collections.abc import Mapping
from typing import Any

_CONFIG_LINE = re.compile(r"Initializing a V1 LLM engine \(v(?P<version>[^)]+)\) with config: (?P<config>.*)")
_FIELDS: dict[str, str] = {
    "model": r"model='([^']*)'",
    "dtype": r"dtype=torch\.(\w+)",
    "max_model_len": r"max_seq_len=(\d+)",
    "tensor_parallel_size": r"tensor_parallel_size=(\d+)",
    "pipeline_parallel_size": r"pipeline_parallel_size=(\d+)",
    "data_parallel_size": r"data_parallel_size=(\d+)",
    "quantization": r"quantization=(\w+)",
    "enforce_eager": r"enforce_eager=(True|False)",
    "kv_cache_dtype": r"kv_cache_dtype=(\w+)",
    "device": r"device_config=(\w+)",
    "prefix_caching": r"enable_prefix_caching=(True|False)",
    "chunked_prefill": r"enable_chunked_prefill=(True|False)",
    "graph_mode": r"cudagraph_mode': <CUDAGraphMode\.(\w+)",
    "compilation_mode": r"'mode': <CompilationMode\.(\w+)",
    "max_graph_size": r"max_cudagraph_capture_size': (\d+)",
}
_ASYNC_OFF = re.compile(r"[Aa]sync(hronous)? scheduling (not supported|is not compatible|will be disabled|is disabled)")
_ASYNC_ARGUMENT = re.compile(r"'async_scheduling': (True|False)")
_RUNNER_V1 = re.compile(r"using the V1 model\s+runner instead")
_RUNNER_V2 = re.compile(r"Using V2 [Mm]odel [Rr]unner|\bV2 model runner (is )?enabled", re.IGNORECASE)
_OVERRIDES = (
    re.compile(r"Overriding cudagraph_mode from .*"),
    re.compile(r"Dynamic speculative decoding is not supported with data parallelism.*"),
    re.compile(r"Async scheduling .*disabled.*"),
    re.compile(r"Model Runner V2 (requires|does not yet support).*"),
    re.compile(r"max_num_scheduled_tokens is set to \d+ based on the speculative decoding settings"),
    re.compile(r"Enforce eager set, disabling torch\.compile.*"),
    re.compile(r"Speculative decoding on CPU without Intel OpenMP.*"),
    re.compile(r"method `\w+` is deprecated and replaced with mtp"),
)
_KV_TOKENS = re.compile(r"KV cache size: ([\d,]+) tokens")
_ASYNC_DEFAULT_SINCE = (0, 14)


def effective_from_log(log: str, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What the log tells, under the keys of `_FIELDS` plus `version`, `async_scheduling` (bool), `model_runner` (`v1`,
    `v2`), `kv_cache_tokens` and `overrides` (vLLM's own sentences, once each). What it does not tell is left out, never
    guessed; the one exception is async scheduling, on by default from 0.14 on where no line switches it off.
    """
    found: dict[str, Any] = {}
    line = _CONFIG_LINE.search(log)
    if line:
        found = {"version": line["version"], **fields_of(line["config"])}
    if tokens := _KV_TOKENS.search(log):
        found["kv_cache_tokens"] = int(tokens[1].replace(",", ""))
    runner = _runner(log, environment or {})
    if runner:
        found["model_runner"] = runner
    is_async = _async(log, found.get("version"))
    if is_async is not None:
        found["async_scheduling"] = is_async
    overrides = [match[0].strip() for pattern in _OVERRIDES for match in pattern.finditer(log)]
    if overrides:
        found["overrides"] = list(dict.fromkeys(overrides))
    return found


def fields_of(config: str) -> dict[str, Any]:
    """What vLLM's one-line text of its configuration tells, under the keys of `_FIELDS`."""
    found = {name: re.search(r"(?:^|[ {,(])'?" + pattern, config) for name, pattern in _FIELDS.items()}
    return {name: _value(match[1]) for name, match in found.items() if match}


def _async(log: str, version: str | None) -> bool | None:
    if _ASYNC_OFF.search(log):
        return False
    argument = _ASYNC_ARGUMENT.search(log)
    if argument:
        return argument[1] == "True"
    if re.search(r"Asynchronous scheduling is enabled", log):
        return True
    numbers = re.match(r"(\d+)\.(\d+)", version or "")
    if numbers and (int(numbers[1]), int(numbers[2])) >= _ASYNC_DEFAULT_SINCE:
        return True
    return None


def _runner(log: str, environment: Mapping[str, str]) -> str | None:
    if _RUNNER_V1.search(log):
        return "v1"
    if _RUNNER_V2.search(log):
        return "v2"
    return {"0": "v1", "1": "v2"}.get(environment.get("VLLM_USE_V2_MODEL_RUNNER", ""))


def _value(text: str) -> Any:
    if text.isdecimal():
        return int(text)
    return {"True": True, "False": False, "None": None}.get(text, text)
