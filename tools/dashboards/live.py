"""Dashboard 1: how speculation does on the servers that Prometheus sees, now."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from tools.dashboards.parts import Marks, Panels, dashboard, level_starts, number, over_time, variable

SELECT = '{model_name=~"$model", instance=~"$server"}'
BY = "sum by (instance)"


def rate(metric: str, by: str = BY) -> str:
    """PromQL: the counter's rate, added up per server."""
    return f"{by} (rate({metric}{SELECT}[$__rate_interval]))"


def share(part: str, whole: str) -> str:
    """PromQL: ratio of two counters' rates; no point where the whole stood still, rather than a 0 or a NaN."""
    return f"{rate(part)} / ({rate(whole)} > 0)"


def quantile(q: float, histogram: str) -> str:
    """PromQL: a quantile per server; buckets are added up, never quantiles."""
    return f"histogram_quantile({q}, {rate(f'{histogram}_bucket', 'sum by (le, instance)')})"


DRAFTS = "vllm:spec_decode_num_drafts_total"
DRAFTED = "vllm:spec_decode_num_draft_tokens_total"
ACCEPTED = "vllm:spec_decode_num_accepted_tokens_total"
PER_POSITION = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
STEPS = "vllm:inter_token_latency_seconds_count"
ENGINE_STEPS = "vllm:iteration_tokens_total_count"
TTFT = "vllm:time_to_first_token_seconds"
TPOT = "vllm:request_time_per_output_token_seconds"
E2E = "vllm:e2e_request_latency_seconds"

ACCEPTANCE = share(ACCEPTED, DRAFTED)
LENGTH = f"1 + {share(ACCEPTED, DRAFTS)}"
PER_STEP = f"({rate('vllm:generation_tokens_total')} - {rate(f'{TTFT}_count')}) / ({rate(STEPS)} > 0)"
COVERAGE = share(DRAFTS, STEPS)
POSITIONS = f"{rate(PER_POSITION, 'sum by (instance, position)')} / on (instance) group_left () ({rate(DRAFTS)} > 0)"
SERVER = "{{instance}}"


def build() -> Dashboard:
    """The dashboard."""
    made = dashboard("loadgen-live", "Acceptance, latency and load of each vLLM server, from its own metrics.")
    made = (
        made.with_variable(variable("model", "Model", "vllm:num_requests_running", "model_name", many=True))
        .with_variable(
            variable("server", "Server", 'vllm:num_requests_running{model_name=~"$model"}', "instance", many=True)
        )
        .annotation(Marks("Runs", "loadgen_run_started_timestamp_seconds", "run {{run}}", "purple"))
        .annotation(Marks("Levels", level_starts(), "{{workload}} at {{concurrency}}", "orange"))
    )
    numbers = (
        number("Acceptance", "Accepted / drafted tokens.", ACCEPTANCE, SERVER, unit="percentunit", digits=0),
        number("Acceptance length", "1 + accepted / drafts: tokens per drafted step, bonus token in.", LENGTH, SERVER),
        number("Tokens per step", "What a speed-up lives on: steps without a draft count too.", PER_STEP, SERVER),
        number("Draft coverage", "Share of decode steps with a draft.", COVERAGE, SERVER, unit="percentunit", digits=0),
        number("Output tokens/s", "Tokens made.", rate("vllm:generation_tokens_total"), SERVER, digits=0),
        number("Running", "Requests in the batch.", f"{BY} (vllm:num_requests_running{SELECT})", SERVER, digits=0),
    )
    for panel in (*numbers, *_speculation(), *_latency(), *_load()):
        made = made.with_panel(panel)
    return made


def _speculation() -> Panels:
    return (
        over_time(
            "Acceptance rate",
            "Accepted / drafted tokens. No line: no drafts.",
            (ACCEPTANCE, SERVER),
            unit="percentunit",
            high=1,
        ),
        over_time(
            "Mean acceptance length and tokens per step",
            "Both in tokens. They part where steps have no draft (n-gram finds nothing, K = 0).",
            (LENGTH, "{{instance}} length"),
            (PER_STEP, "{{instance}} per step"),
        ),
        over_time(
            "Acceptance by position",
            "Share of drafts whose token at this position was accepted. With a schedule, positions that were not "
            "drafted count as rejected.",
            (POSITIONS, "{{instance}} position {{position}}"),
            unit="percentunit",
            high=1,
        ),
        over_time("Draft coverage", "Share of decode steps with a draft.", (COVERAGE, SERVER), unit="percentunit"),
        over_time(
            "Decode batch",
            "Requests decoded per engine step: what a schedule by batch size counts.",
            (share(STEPS, ENGINE_STEPS), SERVER),
        ),
        over_time(
            "Engine steps",
            "Steps per second: drafting and verifying slow them.",
            (rate(ENGINE_STEPS), SERVER),
            unit="ops",
        ),
    )


def _latency() -> Panels:
    return (
        over_time(
            "Time to first token",
            "p50 and p99 from vLLM's buckets.",
            (quantile(0.5, TTFT), "{{instance}} p50"),
            (quantile(0.99, TTFT), "{{instance}} p99"),
            unit="s",
        ),
        over_time(
            "Time per output token",
            "Mean over finished requests. vLLM's first bucket ends at 10 ms, too coarse for quantiles: those are on "
            "the break-even dashboard, from the client.",
            (share(f"{TPOT}_sum", f"{TPOT}_count"), SERVER),
            unit="s",
        ),
        over_time(
            "End to end",
            "p50 and p99 from vLLM's buckets.",
            (quantile(0.5, E2E), "{{instance}} p50"),
            (quantile(0.99, E2E), "{{instance}} p99"),
            unit="s",
        ),
    )


def _load() -> Panels:
    return (
        over_time(
            "Throughput",
            "Tokens per second.",
            (rate("vllm:generation_tokens_total"), "{{instance}} output"),
            (rate("vllm:prompt_tokens_total"), "{{instance}} prompt"),
        ),
        over_time(
            "Running and waiting",
            "Requests in the batch, and in front of it.",
            (f"{BY} (vllm:num_requests_running{SELECT})", "{{instance}} running"),
            (f"{BY} (vllm:num_requests_waiting{SELECT})", "{{instance}} waiting"),
        ),
        over_time(
            "KV cache in use",
            "The fullest engine of a server.",
            (f"max by (instance) (vllm:kv_cache_usage_perc{SELECT})", SERVER),
            unit="percentunit",
        ),
        over_time(
            "Preemptions",
            "Requests put back for want of KV cache, per second.",
            (rate("vllm:num_preemptions_total"), SERVER),
            unit="ops",
        ),
        over_time(
            "Prefix-cache hits",
            "Prompt tokens found in the cache / looked up. A comparison wants this near 0.",
            (share("vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"), SERVER),
            unit="percentunit",
        ),
        over_time(
            "Requests ended",
            "Per second, by reason.",
            (
                f"{rate('vllm:request_success_total', 'sum by (instance, finished_reason)')} > 0",
                "{{instance}} {{finished_reason}}",
            ),
            unit="reqps",
        ),
    )
