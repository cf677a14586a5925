"""What a simulated server says about itself: identity, limits, effective configuration."""

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# The labels of vLLM 0.32's `vllm:cache_config_info` that do not depend on the configuration.
_CACHE_CONSTANTS = {
    "_block_size_resolved": "True",
    "cache_dtype": "auto",
    "cache_hit_alignment_tokens": "None",
    "enable_mamba_shared_prefix_checkpoint": "False",
    "hash_block_size": "None",
    "is_attention_free": "False",
    "kv_cache_dtype_skip_layers": "[]",
    "kv_cache_layout": "None",
    "kv_offloading_backend": "native",
    "kv_offloading_size": "None",
    "kv_sharing_fast_prefill": "False",
    "mamba_block_size": "None",
    "mamba_cache_dtype": "auto",
    "mamba_cache_mode": "none",
    "mamba_page_size_padded": "None",
    "mamba_ssm_cache_dtype": "auto",
    "num_cpu_blocks": "None",
    "prefix_cache_retention_interval": "0",
    "prefix_caching_hash_algo": "sha256",
    "prefix_match_unit": "None",
    "replayssm_buffer_len": "16",
    "skip_page_size_padded": "None",
    "sliding_window": "None",
    "swa_bounded_replay": "True",
    "use_kda_recoverssm": "False",
    "use_replayssm": "False",
    "user_specified_block_size": "False",
}


@dataclass(frozen=True)
class ServerSpec:
    """Facts that the API layer needs; the engine core has its own configuration."""

    model_id: str
    root: str
    max_model_len: int
    version: str = "0.32.0"
    num_speculative_tokens: int = 0
    """0 on a server without speculation."""
    spec_metrics: str | None = None
    """`per-request-spec-decode-metrics`: `summary`, `detailed` or None."""
    block_size: int = 16
    num_gpu_blocks: int = 1
    kv_cache_memory_bytes: int = 0
    gpu_memory_utilization: float = 0.9
    prefix_caching: bool = True
    effective: Mapping[str, Any] = field(default_factory=dict)
    """What the server really runs with: runner, graph mode, async scheduling, speculative config, hardware, seed, …"""

    @property
    def speculative(self) -> bool:
        """True if the server has a speculative configuration."""
        return self.num_speculative_tokens > 0

    @property
    def fingerprint(self) -> str:
        """`vllm-0.32.0-` and eight hex digits that change with the configuration."""
        facts = repr(sorted((k, repr(v)) for k, v in dataclasses.asdict(self).items()))
        return f"vllm-{self.version}-{hashlib.sha256(facts.encode()).hexdigest()[:8]}"

    def cache_config(self) -> dict[str, str]:
        """The labels of `vllm:cache_config_info`."""
        tokens = self.num_gpu_blocks * self.block_size
        return {
            **_CACHE_CONSTANTS,
            "block_size": str(self.block_size),
            "effective_attention_block_size": str(self.block_size),
            "enable_prefix_caching": str(self.prefix_caching),
            "gpu_memory_utilization": str(self.gpu_memory_utilization),
            "kv_cache_max_concurrency": str(round(tokens / self.max_model_len, 3)),
            "kv_cache_memory_bytes": str(self.kv_cache_memory_bytes),
            "kv_cache_size_tokens": str(tokens),
            "num_gpu_blocks": str(self.num_gpu_blocks),
            "num_gpu_blocks_override": "None",
        }
