"""What a server really runs with, read from its log."""

from pathlib import Path

import pytest

from loadgen.engines.effective import effective_from_log

LOG = Path(__file__).with_name("data") / "vllm-0.32.0-cpu-ngram.log"
LINE = "INFO [core.py:133] Initializing a V1 LLM engine (v{version}) with config: model='m', {rest}\n"


def test_a_real_log_of_the_cpu_build() -> None:
    found = effective_from_log(LOG.read_text(encoding="utf-8"))

    overrides = found.pop("overrides")
    assert found == {
        "version": "0.32.0",
        "model": "models/smollm2",
        "dtype": "float32",
        "max_model_len": 2048,
        "tensor_parallel_size": 1,
        "pipeline_parallel_size": 1,
        "data_parallel_size": 1,
        "quantization": None,
        "enforce_eager": True,
        "kv_cache_dtype": "auto",
        "device": "cpu",
        "prefix_caching": True,
        "chunked_prefill": True,
        "graph_mode": "NONE",
        "compilation_mode": "NONE",
        "kv_cache_tokens": 23296,
        "model_runner": "v1",
        "async_scheduling": False,
    }
    assert overrides[0] == "Async scheduling not supported with ngram-based speculative decoding and will be disabled."
    assert len(overrides) == len(set(overrides)) == 4


def test_a_silent_log_tells_nothing() -> None:
    assert effective_from_log("") == {}
    assert effective_from_log("INFO: Application startup complete.\n") == {}


@pytest.mark.parametrize(
    ("version", "more", "expected"),
    [
        ("0.32.0", "", True),
        ("0.13.0", "", None),
        ("0.32.0", "non-default args: {'async_scheduling': False}", False),
        ("0.12.0", "Asynchronous scheduling is enabled.", True),
        ("0.26.0", "Async scheduling will be disabled because it is not supported with the `ray` backend", False),
    ],
)
def test_async_scheduling(version: str, more: str, expected: bool | None) -> None:
    found = effective_from_log(LINE.format(version=version, rest="dtype=torch.bfloat16") + more)

    assert found.get("async_scheduling") is expected


def test_graphs_and_the_schedules_overrides_are_told() -> None:
    log = LINE.format(
        version="0.26.0",
        rest="compilation_config={'mode': <CompilationMode.VLLM_COMPILE: 3>, 'cudagraph_mode': "
        "<CUDAGraphMode.PIECEWISE: 1>, 'max_cudagraph_capture_size': 512}",
    )
    override = "Overriding cudagraph_mode from FULL_AND_PIECEWISE to PIECEWISE for reliability."

    found = effective_from_log(log + f"WARNING [x.py:1] {override}\nWARNING [x.py:1] {override}\n")

    assert (found["graph_mode"], found["compilation_mode"]) == ("PIECEWISE", "VLLM_COMPILE")
    assert found["max_graph_size"] == 512
    assert found["overrides"] == [override]


def test_the_model_runner_by_log_else_by_environment() -> None:
    assert effective_from_log("INFO Using V2 Model Runner\n")["model_runner"] == "v2"
    assert effective_from_log("", {"VLLM_USE_V2_MODEL_RUNNER": "0"})["model_runner"] == "v1"
    assert "model_runner" not in effective_from_log("", {})
