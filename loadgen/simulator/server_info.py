"""The simulated server's configuration in the two forms in which vLLM tells it: text, and its VllmConfig as JSON."""

from typing import Any

from loadgen.simulator.serverspec import ServerSpec

_GRAPH_VALUES: dict[str, Any] = {
    "NONE": 0,
    "PIECEWISE": 1,
    "FULL": 2,
    "FULL_DECODE_ONLY": [2, 0],
    "FULL_AND_PIECEWISE": [2, 1],
}
"""CUDAGraphMode's values, as they go into JSON."""
_DEFAULTS: dict[str, Any] = {
    "speculative_config": None,
    "data_parallel_size": 1,
    "graph_mode": "FULL_AND_PIECEWISE",
    "max_cudagraph_capture_size": 512,
    "max_num_batched_tokens": 8192,
    "max_num_seqs": 256,
    "async_scheduling": True,
    "runner": "V2",
    "drafts_full_k": False,
    "hardware": None,
    "noise": None,
}
"""vLLM's, for a spec that leaves them out."""


def server_info(spec: ServerSpec, *, as_json: bool) -> dict[str, Any]:
    """The body of `/server_info`, in the form of vLLM 0.32; what is the simulator's own stands in `additional_config`,
    where vLLM keeps what is not its own.
    """
    environment: dict[str, Any] = {"VLLM_SERVER_DEV_MODE": True}
    if spec.effective.get("force_v1"):
        environment["VLLM_USE_V2_MODEL_RUNNER"] = False
    config = vllm_config(spec) if as_json else config_text(spec)
    return {"vllm_config": config, "vllm_env": environment, "system_env": {}}


def config_text(spec: ServerSpec) -> str:
    """The configuration as vLLM's log and its text answer write it."""
    effective = {**_DEFAULTS, **spec.effective}
    return (
        f"model={spec.root!r}, speculative_config={effective['speculative_config']}, dtype=torch.bfloat16, "
        f"max_seq_len={spec.max_model_len}, tensor_parallel_size=1, pipeline_parallel_size=1, "
        f"data_parallel_size={effective['data_parallel_size']}, quantization=None, "
        f"enforce_eager={effective['graph_mode'] == 'NONE'}, enable_prefix_caching={spec.prefix_caching}, "
        f"enable_chunked_prefill=True, compilation_config={{'cudagraph_mode': "
        f"<CUDAGraphMode.{effective['graph_mode']}>, 'max_cudagraph_capture_size': "
        f"{effective['max_cudagraph_capture_size']}}}, simulated on {effective['hardware']}"
    )


def vllm_config(spec: ServerSpec) -> dict[str, Any]:
    """The configuration section by section, with vLLM's names; enumerations by value."""
    effective = {**_DEFAULTS, **spec.effective}
    batched = effective["max_num_batched_tokens"]
    return {
        "model_config": {
            "model": spec.root,
            "dtype": "torch.bfloat16",
            "max_model_len": spec.max_model_len,
            "quantization": None,
            "enforce_eager": effective["graph_mode"] == "NONE",
            "served_model_name": spec.model_id,
        },
        "cache_config": {
            "block_size": spec.block_size,
            "gpu_memory_utilization": spec.gpu_memory_utilization,
            "cache_dtype": "auto",
            "enable_prefix_caching": spec.prefix_caching,
            "num_gpu_blocks": spec.num_gpu_blocks,
            "kv_cache_size_tokens": spec.num_gpu_blocks * spec.block_size,
            "kv_cache_memory_bytes": spec.kv_cache_memory_bytes,
        },
        "parallel_config": {
            "pipeline_parallel_size": 1,
            "tensor_parallel_size": 1,
            "data_parallel_size": effective["data_parallel_size"],
        },
        "scheduler_config": {
            "max_num_batched_tokens": batched,
            "max_num_scheduled_tokens": batched,
            "max_num_seqs": effective["max_num_seqs"],
            "enable_chunked_prefill": True,
            "async_scheduling": effective["async_scheduling"],
        },
        "device_config": {"device": "cuda"},
        "speculative_config": _speculative(spec),
        "compilation_config": {
            "mode": 3,
            "cudagraph_mode": _GRAPH_VALUES.get(effective["graph_mode"], effective["graph_mode"]),
            "max_cudagraph_capture_size": effective["max_cudagraph_capture_size"],
        },
        "additional_config": {
            "loadgen_simulator": {name: effective[name] for name in ("hardware", "noise", "runner", "drafts_full_k")}
        },
    }


def _speculative(spec: ServerSpec) -> dict[str, Any] | None:
    config = spec.effective.get("speculative_config")
    if config is None:
        return None
    return {"num_speculative_tokens_per_batch_size": None, **config}
