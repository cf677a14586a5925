"""What a server really runs with, read from its log."""

import json
from pathlib import Path

import pytest

from loadgen.engines.effective import effective_from_log
from loadgen.engines.server_info import effective_from_info

LOG = Path(__file__).with_name("data") / "vllm-0.32.0-cpu-ngram.log"
INFO = Path(__file__).with_name("data") / "vllm-0.32.0-cpu-server-info.json"
"""What its `/server_info` dumps, with a schedule; sections that nobody reads are left out."""
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


def test_a_real_server_info_tells_what_the_log_does_and_the_speculation_in_force() -> None:
    told = effective_from_info(json.loads(INFO.read_text(encoding="utf-8")))
    logged = effective_from_log(LOG.read_text(encoding="utf-8"))

    assert told.pop("speculation") == {
        "method": "ngram",
        "num_speculative_tokens": 4,
        "num_speculative_tokens_per_batch_size": [[1, 8, 4], [9, 256, 0]],
    }
    assert (told.pop("max_num_seqs"), told.pop("max_num_batched_tokens"), told.pop("max_num_scheduled_tokens")) == (
        128,
        2048,
        2048,
    )
    assert {name: logged.get(name) for name in told} == told
    assert told["async_scheduling"] is False


@pytest.mark.parametrize(
    ("mode", "expected"),
    [(0, "NONE"), (1, "PIECEWISE"), ([2, 0], "FULL_DECODE_ONLY"), ([2, 1], "FULL_AND_PIECEWISE"), (9, "9")],
)
def test_graph_modes_come_by_value(mode: object, expected: str) -> None:
    body = {"vllm_config": {"compilation_config": {"cudagraph_mode": mode}, "speculative_config": None}}
    assert effective_from_info(body) == {"graph_mode": expected, "speculation": None}


def test_the_text_form_and_the_environment_are_read() -> None:
    text = "model='m', max_seq_len=99, compilation_config={'cudagraph_mode': <CUDAGraphMode.PIECEWISE: 1>}"
    found = effective_from_info({"vllm_config": text, "vllm_env": {"VLLM_USE_V2_MODEL_RUNNER": False}})
    assert found == {"model": "m", "max_model_len": 99, "graph_mode": "PIECEWISE", "model_runner": "v1"}


@pytest.mark.parametrize("body", [{}, {"vllm_config": None}, {"vllm_config": {"model_config": 3}}, {"vllm_env": []}])
def test_another_servers_answer_tells_nothing(body: dict[str, object]) -> None:
    assert effective_from_info(body) == {}
