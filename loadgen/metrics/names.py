"""The metric names of vLLM, release by release: the one place where they are written.

Seen in the bodies under tests/data/captures (0.26, 0.32) and in the wheels 0.10 to 0.32.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True)
class Family:
    """One metric as vLLM declares it."""

    name: str
    """Without the suffix that the exposition adds; a histogram may end in `_total` (vllm:iteration_tokens_total)."""
    kind: Kind
    since: tuple[int, int] = (0, 10)
    """First release of 0.10 and later that has it."""
    until: tuple[int, int] | None = None
    """Last release that has it; None = still there in 0.32."""

    @property
    def sample_names(self) -> tuple[str, ...]:
        """The names under which its values stand in a body, `_created` left out."""
        if self.kind == "counter":
            return (f"{self.name}_total",)
        if self.kind == "histogram":
            return tuple(f"{self.name}{suffix}" for suffix in ("_bucket", "_sum", "_count"))
        return (self.name,)


FAMILIES: tuple[Family, ...] = (
    Family("vllm:num_requests_running", "gauge"),
    Family("vllm:num_requests_waiting", "gauge"),
    Family("vllm:num_requests_waiting_by_reason", "gauge", (0, 20)),
    Family("vllm:kv_cache_usage_perc", "gauge"),
    Family("vllm:gpu_cache_usage_perc", "gauge", until=(0, 11)),
    Family("vllm:engine_sleep_state", "gauge", (0, 12)),
    Family("vllm:cache_config_info", "gauge"),
    Family("vllm:prompt_tokens", "counter"),
    Family("vllm:prompt_tokens_by_source", "counter", (0, 16)),
    Family("vllm:prompt_tokens_cached", "counter", (0, 16)),
    Family("vllm:prompt_tokens_cached_by_source", "counter", (0, 32)),
    Family("vllm:generation_tokens", "counter"),
    Family("vllm:request_success", "counter"),
    Family("vllm:num_preemptions", "counter"),
    Family("vllm:admission_rejections", "counter", (0, 32)),
    Family("vllm:prefix_cache_queries", "counter"),
    Family("vllm:prefix_cache_hits", "counter"),
    Family("vllm:gpu_prefix_cache_queries", "counter", until=(0, 11)),
    Family("vllm:gpu_prefix_cache_hits", "counter", until=(0, 11)),
    Family("vllm:external_prefix_cache_queries", "counter", (0, 12)),
    Family("vllm:external_prefix_cache_hits", "counter", (0, 12)),
    Family("vllm:mm_cache_queries", "counter", (0, 12)),
    Family("vllm:mm_cache_hits", "counter", (0, 12)),
    Family("vllm:spec_decode_num_drafts", "counter"),
    Family("vllm:spec_decode_num_draft_tokens", "counter"),
    Family("vllm:spec_decode_num_accepted_tokens", "counter"),
    Family("vllm:spec_decode_num_accepted_tokens_per_pos", "counter"),
    Family("vllm:estimated_flops_per_gpu", "counter", (0, 26)),
    Family("vllm:estimated_read_bytes_per_gpu", "counter", (0, 26)),
    Family("vllm:estimated_write_bytes_per_gpu", "counter", (0, 26)),
    Family("vllm:iteration_tokens_total", "histogram"),
    Family("vllm:time_to_first_token_seconds", "histogram"),
    Family("vllm:time_per_output_token_seconds", "histogram", until=(0, 14)),
    Family("vllm:inter_token_latency_seconds", "histogram", (0, 10)),
    Family("vllm:request_time_per_output_token_seconds", "histogram", (0, 11)),
    Family("vllm:e2e_request_latency_seconds", "histogram"),
    Family("vllm:request_queue_time_seconds", "histogram"),
    Family("vllm:request_inference_time_seconds", "histogram"),
    Family("vllm:request_prefill_time_seconds", "histogram"),
    Family("vllm:request_decode_time_seconds", "histogram"),
    Family("vllm:request_prompt_tokens", "histogram"),
    Family("vllm:request_generation_tokens", "histogram"),
    Family("vllm:request_max_num_generation_tokens", "histogram"),
    Family("vllm:request_params_n", "histogram"),
    Family("vllm:request_params_max_tokens", "histogram"),
    Family("vllm:request_prefill_kv_computed_tokens", "histogram", (0, 13)),
    Family("vllm:request_num_preemptions", "histogram", (0, 30)),
)

# What we read: the newest name first, then what older releases called the same thing.
GENERATION_TOKENS = ("vllm:generation_tokens_total",)
PROMPT_TOKENS = ("vllm:prompt_tokens_total",)
DRAFTS = ("vllm:spec_decode_num_drafts_total",)
DRAFT_TOKENS = ("vllm:spec_decode_num_draft_tokens_total",)
ACCEPTED_TOKENS = ("vllm:spec_decode_num_accepted_tokens_total",)
ACCEPTED_PER_POSITION = ("vllm:spec_decode_num_accepted_tokens_per_pos_total",)
PREEMPTIONS = ("vllm:num_preemptions_total",)
PREFIX_CACHE_QUERIES = ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total")
PREFIX_CACHE_HITS = ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total")
REQUESTS_FINISHED = ("vllm:request_success_total",)
PROCESS_CPU = ("process_cpu_seconds_total",)
PROCESS_START = ("process_start_time_seconds",)

# Histograms, without `_bucket`, `_sum`, `_count`. Up to 0.14 `time_per_output_token_seconds` held the gaps between
# output events, which is what `inter_token_latency_seconds` (0.10.2 and later) holds.
INTER_TOKEN_LATENCY = ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds")
ITERATION_TOKENS = ("vllm:iteration_tokens_total",)
TIME_TO_FIRST_TOKEN = ("vllm:time_to_first_token_seconds",)
TIME_PER_OUTPUT_TOKEN = ("vllm:request_time_per_output_token_seconds",)
E2E_LATENCY = ("vllm:e2e_request_latency_seconds",)
QUEUE_TIME = ("vllm:request_queue_time_seconds",)

RUNNING = ("vllm:num_requests_running",)
WAITING = ("vllm:num_requests_waiting",)
KV_CACHE_USAGE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
GAUGES = frozenset(RUNNING + WAITING + KV_CACHE_USAGE)


def known_sample_names(release: tuple[int, int] | None = None) -> frozenset[str]:
    """Every vLLM sample name of a release such as (0, 32), or of all; for checks of dashboards and alerts."""
    return frozenset(
        name
        for family in FAMILIES
        if release is None or (family.since <= release and (family.until is None or release <= family.until))
        for name in family.sample_names
    )
