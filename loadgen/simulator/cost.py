"""Seconds of one engine step: the written cost model (vllm-facts part 6)."""

from bisect import bisect_left
from typing import NamedTuple

from loadgen.simulator.config import MODEL_DRAFTS, NGRAM_METHODS, EngineConfig
from loadgen.simulator.hardware import Hardware

_RESERVED_BYTES = 1.5e9  # activations, graphs and CUDA's own


class StepShape(NamedTuple):
    """What one step computes."""

    tokens: int
    """Prompt tokens and verified tokens together."""
    requests: int
    prefill_tokens: int
    rows: int
    """Tokens whose logits are sampled: verified tokens, and one per finished prompt."""
    context_tokens: int
    """Context read by attention, summed over requests."""
    verified_context: int
    """Context times draft tokens, summed over requests that verify drafts."""
    uniform_k: int
    """K if every request verifies 1 + K tokens and none is in prefill; -1 otherwise."""
    drafting: int
    """Requests that get a draft made at the end of this step."""
    drafting_context: int
    """Their context tokens, summed."""
    draft_k: int
    """K of the drafts made at the end of this step."""


class CostModel:
    """Step times of one engine configuration on one machine."""

    def __init__(self, config: EngineConfig, hardware: Hardware) -> None:
        self.config = config
        self.hardware = hardware
        self._capture = config.capture_sizes if config.graph_mode != "NONE" else ()
        self._weights_s = hardware.weight_bytes / hardware.bandwidth
        self._token_s = 2.0 * hardware.parameters / hardware.flops
        self._row_s = 2.0 * hardware.head_parameters / hardware.flops
        self._speculative = config.method != "none"

    def padded(self, tokens: int) -> int:
        """Tokens that are computed: the next captured graph size; beyond the largest, the tokens themselves."""
        at = bisect_left(self._capture, tokens)
        return self._capture[at] if at < len(self._capture) else tokens

    def seconds(self, shape: StepShape) -> float:
        """How long the step takes, from its schedule to its tokens."""
        gpu = self._target_s(shape) + self._sampling_s(shape)
        host = self._host_s(shape)
        draft = self.draft_s(shape) if self._speculative else 0.0
        if self.config.async_scheduling:
            return max(gpu + draft, host)
        return gpu + draft + host

    def terms(self, shape: StepShape) -> dict[str, float]:
        """The step's parts in seconds, by name; `total` is `seconds(shape)`."""
        return {
            "gemm": self._gemm_s(shape),
            "kv": self._kv_s(shape),
            "launch": self._launch_s(shape),
            "target": self._target_s(shape),
            "sampling": self._sampling_s(shape),
            "host": self._host_s(shape),
            "draft": self.draft_s(shape) if self._speculative else 0.0,
            "total": self.seconds(shape),
        }

    def _gemm_s(self, shape: StepShape) -> float:
        """Weights over bandwidth or FLOPs of padded tokens, joined by a smooth maximum (power mean)."""
        sharp = self.hardware.knee_sharpness
        compute = self._token_s * self.padded(shape.tokens) + self._row_s * shape.rows
        larger, smaller = (compute, self._weights_s) if compute > self._weights_s else (self._weights_s, compute)
        joined: float = larger * (1.0 + (smaller / larger) ** sharp) ** (1.0 / sharp)
        return joined

    def _kv_s(self, shape: StepShape) -> float:
        read = shape.context_tokens + self.hardware.verify_attention * shape.verified_context
        return read * self.hardware.kv_bytes_per_token / self.hardware.bandwidth

    def _is_full_graph(self, shape: StepShape) -> bool:
        if self.config.graph_mode not in {"FULL_AND_PIECEWISE", "FULL", "FULL_DECODE_ONLY"} or shape.uniform_k < 0:
            return False
        # Runner V1 has one uniform decode graph, for 1 + K tokens; V2 keeps one set per K (vLLM #45953).
        return self.config.runner == "V2" or shape.uniform_k == self.config.k

    def launch_mode(self, shape: StepShape) -> str:
        """`full`, `piecewise` or `eager`: how the step's kernels reach the GPU."""
        slots = shape.requests if self.config.method == "draft_model" and shape.uniform_k >= 0 else 0
        if not self._capture or shape.tokens + slots > self._capture[-1]:
            return "eager"
        return "full" if self._is_full_graph(shape) else "piecewise"

    def _launch_s(self, shape: StepShape) -> float:
        """CPU time to launch what no full graph holds; the GPU's work hides it if it takes longer."""
        mode = self.launch_mode(shape)
        if mode == "full":
            return 0.0
        return self.hardware.eager_launch_s if mode == "eager" else self.hardware.piecewise_launch_s

    def _target_s(self, shape: StepShape) -> float:
        work = self._gemm_s(shape) + self._kv_s(shape)
        return max(work, self._launch_s(shape)) + self.hardware.full_graph_s

    def _sampling_s(self, shape: StepShape) -> float:
        return self.hardware.sample_row_s * shape.rows

    def _host_s(self, shape: StepShape) -> float:
        hardware = self.hardware
        host = hardware.host_step_s + hardware.host_request_s * shape.requests
        if self._speculative:
            host += hardware.spec_step_s + hardware.spec_request_s * shape.requests
        return host

    def draft_s(self, shape: StepShape) -> float:
        """Seconds to make this step's drafts. A model drafter runs once even at K = 0, to keep its KV in step."""
        hardware, method = self.hardware, self.config.method
        if method == "ngram":
            if not shape.draft_k:
                return 0.0
            per_request = hardware.lookup_request_s * shape.drafting
            return hardware.lookup_step_s + per_request + hardware.lookup_token_s * shape.drafting_context
        if method in NGRAM_METHODS:  # ngram_gpu: one small kernel
            return hardware.lookup_step_s
        if method == "suffix":
            return hardware.suffix_request_s * shape.drafting
        if method not in MODEL_DRAFTS:
            return 0.0
        k = self.config.k if self.config.drafts_full_k else shape.draft_k
        weights = hardware.draft_weight_bytes / hardware.bandwidth
        token = 2.0 * hardware.draft_parameters / hardware.flops
        kv = shape.drafting_context * hardware.draft_kv_bytes_per_token / hardware.bandwidth
        first = max(weights, token * shape.tokens) + kv + hardware.draft_launch_s
        later = max(weights, token * shape.drafting) + kv + hardware.draft_launch_s
        return first + max(0, k - 1) * later

    def kv_blocks(self) -> int:
        """Blocks that fit: memory share minus weights, drafter and reserve, over the bytes of a block."""
        if self.config.num_gpu_blocks is not None:
            return self.config.num_gpu_blocks
        hardware = self.hardware
        room = hardware.memory_bytes * self.config.gpu_memory_utilization - hardware.weight_bytes - _RESERVED_BYTES
        per_token = hardware.kv_bytes_per_token
        if self.config.method in MODEL_DRAFTS:
            room -= hardware.draft_weight_bytes
            per_token += hardware.draft_kv_bytes_per_token
        return max(1, int(room / (per_token * self.config.block_size)))


class ApiProcess:
    """The API server: one serial process that each chunk and each request passes; in engine time."""

    def __init__(self, hardware: Hardware) -> None:
        self._hardware = hardware
        self.free_s = 0.0
        self.busy_s = 0.0

    def accept(self, now_s: float) -> float:
        """When a request that arrives now has reached the engine.

        It does not wait for all queued chunks: an event loop serves connections in turn. Its work delays them.
        """
        cost_s = self._hardware.api_request_s
        self._serve(now_s, cost_s)
        return now_s + cost_s + self._hardware.request_latency_s

    def deliver(self, due_s: float, tokens: int) -> float:
        """When a chunk that the engine gave out at `due_s` is with the client."""
        return self._serve(due_s, self._hardware.api_chunk_s + self._hardware.api_token_s * tokens)

    def _serve(self, at_s: float, cost_s: float) -> float:
        self.free_s = max(self.free_s, at_s) + cost_s
        self.busy_s += cost_s
        return self.free_s
