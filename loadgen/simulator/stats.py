"""vLLM's statistics of one engine: which step and which request moves which metric (facts: vLLM 0.32 v1/metrics)."""

from collections.abc import Mapping
from dataclasses import dataclass

from loadgen.simulator.exposition import ProcessRows, Registry, Value
from loadgen.simulator.families import (
    LATENESS_BUCKETS,
    Family,
    histogram_families,
    speculation_families,
    state_families,
)
from loadgen.simulator.model import LoadState, StepOutput, StepResult


@dataclass(slots=True)
class _RequestStats:
    """Times of one request, in seconds on the engine's clock."""

    arrival_s: float
    prompt_tokens: int
    max_tokens: int
    scheduled_s: float = -1.0
    first_s: float = -1.0
    last_s: float = -1.0
    generated: int = 0
    cached: int = 0


class ServerStats:
    """Everything that `/metrics` says, and the totals of the log's ten-second line."""

    def __init__(self, model_name: str, max_model_len: int, positions: int, cache_config: Mapping[str, str]) -> None:
        registry = self._registry = Registry({"model_name": model_name, "engine": "0"})
        if positions:
            registry.add(speculation_families(positions))
        registry.add(state_families())
        registry.add(histogram_families(max_model_len))
        registry.add_info(
            "vllm:cache_config_info", "Information of the LLMEngine CacheConfig", {**cache_config, "engine": "0"}
        )
        own = self._own = Registry({})
        own.add(
            (
                Family(
                    "loadgen_sim_lateness_seconds",
                    "How much later than its deadline a simulated step was delivered.",
                    "histogram",
                    buckets=LATENESS_BUCKETS,
                ),
                Family("loadgen_sim_lateness_max_seconds", "The latest delivery so far.", "gauge"),
                Family("loadgen_sim_steps", "Engine steps delivered, prefill-only ones included."),
                Family(
                    "loadgen_sim_api_delay_max_seconds", "The longest that a chunk waited for the API process.", "gauge"
                ),
            )
        )
        self._process = ProcessRows()
        self._requests: dict[str, _RequestStats] = {}
        self._positions = [
            registry.value("vllm:spec_decode_num_accepted_tokens_per_pos", str(i)) for i in range(positions)
        ]
        registry.value("vllm:engine_sleep_state", "awake").value = 1.0
        self._itl = registry.histogram("vllm:inter_token_latency_seconds")
        self._generation = registry.value("vllm:generation_tokens")

    def value(self, name: str, label: str = "") -> float:
        """The present value of a counter or gauge."""
        return self._registry.value(name, label).value

    def render(self, state: LoadState) -> bytes:
        """The `/metrics` body: process rows, vLLM's rows, the simulator's own rows."""
        self._set("vllm:num_requests_running", state.running)
        self._set("vllm:num_requests_waiting", state.waiting)
        self._registry.value("vllm:num_requests_waiting_by_reason", "capacity").value = state.waiting
        self._set("vllm:kv_cache_usage_perc", state.kv_cache_usage)
        return self._process.render() + self._registry.render() + self._own.render()

    def arrived(self, request_id: str, arrival_s: float, prompt_tokens: int, max_tokens: int) -> None:
        """A request came in."""
        self._requests[request_id] = _RequestStats(arrival_s, prompt_tokens, max_tokens)

    def aborted(self, request_id: str) -> None:
        """The client left: vLLM drops the request's statistics, `finished_reason="abort"` never grows."""
        self._requests.pop(request_id, None)

    def late(self, lateness_s: float) -> None:
        """One delivery's lateness."""
        self._own.histogram("loadgen_sim_lateness_seconds").observe(max(lateness_s, 0.0))
        latest = self._own.value("loadgen_sim_lateness_max_seconds")
        latest.value = max(latest.value, lateness_s)

    def delayed(self, delay_s: float) -> None:
        """How long after its output a chunk leaves the API process."""
        longest = self._own.value("loadgen_sim_api_delay_max_seconds")
        longest.value = max(longest.value, delay_s)

    def step(self, result: StepResult, begun_s: float, due_s: float) -> None:
        """One engine step that began at `begun_s` and whose outputs came at `due_s`."""
        self._own.value("loadgen_sim_steps").value += 1
        for request_id in result.admitted:
            request = self._requests.get(request_id)
            if request is not None and request.scheduled_s < 0:
                request.scheduled_s = max(begun_s, request.arrival_s)
        self._add("vllm:num_preemptions", result.preempted)
        self._add("vllm:prefix_cache_queries", result.prefix_queries)
        self._add("vllm:prefix_cache_hits", result.prefix_hits)
        self._registry.value("vllm:prompt_tokens_cached_by_source", "device").value += result.prefix_hits
        tokens = sum(self._output(output, begun_s, due_s) for output in result.outputs)
        if result.outputs:
            # A step that only prefills a chunk gives vLLM no iteration statistics; the prompt counts with its first
            # token.
            self._registry.histogram("vllm:iteration_tokens_total").observe(tokens)

    def _output(self, output: StepOutput, begun_s: float, due_s: float) -> int:
        """Observes one output; returns the tokens that it adds to `iteration_tokens_total`."""
        if output.drafted:
            self._drafts(output)
        request = self._requests.get(output.request_id)
        if request is None:
            return 0  # its client has left meanwhile
        tokens = len(output.new_token_ids)
        self._generation.value += tokens
        request.generated += tokens
        if output.first:
            computed = self._first(request, output, begun_s, due_s)
        else:
            computed = 0
            self._itl.observe(due_s - request.last_s)
        request.last_s = due_s
        if output.finish_reason is not None:
            del self._requests[output.request_id]
            self._finished(request, output.finish_reason, due_s)
        return tokens + computed

    def _first(self, request: _RequestStats, output: StepOutput, begun_s: float, due_s: float) -> int:
        if request.scheduled_s < 0:
            request.scheduled_s = max(begun_s, request.arrival_s)
        request.first_s = due_s
        request.cached = output.cached_prompt_tokens
        computed = request.prompt_tokens - request.cached
        self._add("vllm:prompt_tokens", request.prompt_tokens)
        self._add("vllm:prompt_tokens_cached", request.cached)
        self._registry.value("vllm:prompt_tokens_by_source", "local_compute").value += computed
        self._registry.value("vllm:prompt_tokens_by_source", "local_cache_hit").value += request.cached
        self._observe("vllm:time_to_first_token_seconds", due_s - request.arrival_s)
        return computed

    def _drafts(self, output: StepOutput) -> None:
        self._add("vllm:spec_decode_num_drafts", 1)
        self._add("vllm:spec_decode_num_draft_tokens", output.drafted)
        self._add("vllm:spec_decode_num_accepted_tokens", output.accepted)
        for row in self._positions[: output.accepted]:
            row.value += 1

    def _finished(self, request: _RequestStats, reason: str, now_s: float) -> None:
        decode_s = request.last_s - request.first_s
        self._registry.value("vllm:request_success", reason).value += 1
        self._observe("vllm:e2e_request_latency_seconds", now_s - request.arrival_s)
        self._observe("vllm:request_queue_time_seconds", request.scheduled_s - request.arrival_s)
        self._observe("vllm:request_prefill_time_seconds", request.first_s - request.scheduled_s)
        self._observe("vllm:request_inference_time_seconds", request.last_s - request.scheduled_s)
        self._observe("vllm:request_decode_time_seconds", decode_s)
        # One-token requests are recorded as 0, in the lowest bucket.
        per_token_s = decode_s / (request.generated - 1) if request.generated > 1 else 0.0
        self._observe("vllm:request_time_per_output_token_seconds", per_token_s)
        self._observe("vllm:request_num_preemptions", 0)
        self._observe("vllm:request_prefill_kv_computed_tokens", request.prompt_tokens - request.cached)
        self._observe("vllm:request_prompt_tokens", request.prompt_tokens)
        self._observe("vllm:request_generation_tokens", request.generated)
        self._observe("vllm:request_max_num_generation_tokens", request.generated)
        self._observe("vllm:request_params_n", 1)
        self._observe("vllm:request_params_max_tokens", request.max_tokens)

    def _add(self, name: str, amount: float) -> None:
        self._registry.value(name).value += amount

    def _set(self, name: str, amount: float) -> None:
        row: Value = self._registry.value(name)
        row.value = float(amount)

    def _observe(self, name: str, amount: float) -> None:
        self._registry.histogram(name).observe(amount)
