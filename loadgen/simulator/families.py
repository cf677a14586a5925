"""Names, labels, HELP texts and buckets of vLLM 0.32's `vllm:*` metrics, in the order in which it exposes them."""

from dataclasses import dataclass

TTFT_BUCKETS = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0,
    640.0, 2560.0,
)  # fmt: skip
TOKEN_LATENCY_BUCKETS = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
REQUEST_LATENCY_BUCKETS = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0,
    1920.0, 7680.0,
)  # fmt: skip
ITERATION_BUCKETS = (1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0)
LATENESS_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5)


def one_two_five(limit: int) -> tuple[float, ...]:
    """1, 2, 5, 10, 20, 50, … up to `limit`: the buckets of everything that is counted in tokens."""
    found: list[float] = []
    power = 1
    while True:
        for digit in (1, 2, 5):
            if digit * power > limit:
                return tuple(found)
            found.append(float(digit * power))
        power *= 10


@dataclass(frozen=True)
class Family:
    """One metric family. `extra` is (label name, its values); `buckets` makes it a histogram."""

    name: str
    help: str
    kind: str = "counter"
    extra: tuple[str, tuple[str, ...]] | None = None
    buckets: tuple[float, ...] = ()
    engine_label: bool = True


_MFU = "(for Model Flops Utilization calculations)."


def speculation_families(positions: int) -> tuple[Family, ...]:
    """The four families that exist only on a server with speculation; `positions` is num_speculative_tokens."""
    labels = ("position", tuple(str(i) for i in range(positions)))
    return (
        Family("vllm:spec_decode_num_drafts", "Number of spec decoding drafts."),
        Family("vllm:spec_decode_num_draft_tokens", "Number of draft tokens."),
        Family("vllm:spec_decode_num_accepted_tokens", "Number of accepted tokens."),
        Family("vllm:spec_decode_num_accepted_tokens_per_pos", "Accepted tokens per draft position.", extra=labels),
    )


def state_families() -> tuple[Family, ...]:
    """What is exposed before the cache configuration: estimates, gauges, counters."""
    return (
        Family("vllm:estimated_flops_per_gpu", f"Estimated number of floating point operations per GPU {_MFU}"),
        Family("vllm:estimated_read_bytes_per_gpu", f"Estimated number of bytes read from memory per GPU {_MFU}"),
        Family("vllm:estimated_write_bytes_per_gpu", f"Estimated number of bytes written to memory per GPU {_MFU}"),
        Family("vllm:num_requests_running", "Number of requests in model execution batches.", "gauge"),
        Family("vllm:num_requests_waiting", "Number of requests waiting to be processed.", "gauge"),
        Family(
            "vllm:num_requests_waiting_by_reason",
            "Number of waiting requests by reason. Reason labels: 'capacity' = waiting for scheduling capacity; "
            "'deferred' = deferred by transient constraints (LoRA budget, KV transfer, blocked status). "
            "Sum of all reasons equals vllm:num_requests_waiting.",
            "gauge",
            extra=("reason", ("capacity", "deferred")),
        ),
        Family(
            "vllm:engine_sleep_state",
            "Engine sleep state; awake = 0 means engine is sleeping; awake = 1 means engine is awake; "
            "weights_offloaded = 1 means sleep level 1; discard_all = 1 means sleep level 2.",
            "gauge",
            extra=("sleep_state", ("awake", "weights_offloaded", "discard_all")),
        ),
        Family("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", "gauge"),
        *_cache_counters(),
        Family("vllm:num_preemptions", "Cumulative number of preemption from the engine."),
        Family("vllm:prompt_tokens", "Number of prefill tokens processed."),
        Family(
            "vllm:prompt_tokens_by_source",
            "Number of prompt tokens by source.",
            extra=("source", ("local_compute", "local_cache_hit", "external_kv_transfer")),
        ),
        Family("vllm:prompt_tokens_cached", "Number of cached prompt tokens (local + external)."),
        Family(
            "vllm:prompt_tokens_cached_by_source",
            "Prefix-cache hit tokens by the cache tier that supplied them: device (local HBM), host (offloaded to "
            "DRAM), disk, p2p (transferred from another vLLM instance) or external_unspecified. Counted at admission; "
            "sums to vllm:prefix_cache_hits + vllm:external_prefix_cache_hits.",
            extra=("source", ("device", "host", "p2p", "disk", "external_unspecified")),
        ),
        Family("vllm:generation_tokens", "Number of generation tokens processed."),
        Family(
            "vllm:request_success",
            "Count of successfully processed requests.",
            extra=("finished_reason", ("stop", "length", "abort", "error", "repetition")),
        ),
        Family(
            "vllm:admission_rejections",
            "Number of admission attempts rejected by a queue limit, by reason.",
            extra=("reason", ("max_num_queued_reqs", "max_num_queued_tokens")),
            engine_label=False,
        ),
    )


def _cache_counters() -> tuple[Family, ...]:
    tokens = "in terms of number of {} tokens."
    external = "from KV connector cross-instance cache sharing, "
    return (
        Family("vllm:prefix_cache_queries", f"Prefix cache queries, {tokens.format('queried')}"),
        Family("vllm:prefix_cache_hits", f"Prefix cache hits, {tokens.format('cached')}"),
        Family(
            "vllm:external_prefix_cache_queries", f"External prefix cache queries {external}{tokens.format('queried')}"
        ),
        Family("vllm:external_prefix_cache_hits", f"External prefix cache hits {external}{tokens.format('cached')}"),
        Family("vllm:mm_cache_queries", "Multi-modal cache queries, in terms of number of queried items."),
        Family("vllm:mm_cache_hits", "Multi-modal cache hits, in terms of number of cached items."),
    )


def histogram_families(max_model_len: int) -> tuple[Family, ...]:
    """Every histogram of the engine, in order."""
    counted = one_two_five(max_model_len)

    def tokens(name: str, text: str, buckets: tuple[float, ...] = counted) -> Family:
        return Family(f"vllm:{name}", text, "histogram", buckets=buckets)

    def phase(name: str, text: str) -> Family:
        return Family(f"vllm:{name}_seconds", text, "histogram", buckets=REQUEST_LATENCY_BUCKETS)

    def latency(name: str, text: str, buckets: tuple[float, ...]) -> Family:
        return Family(f"vllm:{name}_seconds", text, "histogram", buckets=buckets)

    spent = "Histogram of time spent in {} phase for request."
    return (
        tokens("request_prompt_tokens", "Number of prefill tokens processed."),
        tokens("request_generation_tokens", "Number of generation tokens processed."),
        tokens("iteration_tokens_total", "Histogram of number of tokens per engine_step.", ITERATION_BUCKETS),
        tokens("request_max_num_generation_tokens", "Histogram of maximum number of requested generation tokens."),
        tokens("request_params_n", "Histogram of the n request parameter.", (1.0, 2.0, 5.0, 10.0, 20.0)),
        tokens("request_params_max_tokens", "Histogram of the max_tokens request parameter."),
        latency("time_to_first_token", "Histogram of time to first token in seconds.", TTFT_BUCKETS),
        latency("inter_token_latency", "Histogram of inter-token latency in seconds.", TOKEN_LATENCY_BUCKETS),
        latency(
            "request_time_per_output_token",
            "Histogram of time_per_output_token_seconds per request.",
            TOKEN_LATENCY_BUCKETS,
        ),
        phase("e2e_request_latency", "Histogram of e2e request latency in seconds."),
        phase("request_queue_time", spent.format("WAITING")),
        phase("request_inference_time", spent.format("RUNNING")),
        phase("request_prefill_time", spent.format("PREFILL")),
        phase("request_decode_time", spent.format("DECODE")),
        tokens(
            "request_num_preemptions",
            "Histogram of the number of times a request was preempted.",
            (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0),
        ),
        tokens(
            "request_prefill_kv_computed_tokens",
            "Histogram of new KV tokens computed during prefill (excluding cached tokens).",
        ),
    )
