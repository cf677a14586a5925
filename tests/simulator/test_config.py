"""A profile becomes what vLLM would run: defaults, overrides, the dense schedule."""

from typing import Any

import pytest

from loadgen.profiles.model import BatchSchedule, ServerProfile, SpeculativeConfig
from loadgen.simulator.config import capture_sizes, engine_config
from loadgen.simulator.schedule import dense_schedule


def profile(method: str = "none", k: int = 4, schedule: BatchSchedule | None = None, **raw: Any) -> ServerProfile:
    spec = None if method == "none" else SpeculativeConfig(method, k, raw, schedule=schedule)
    return ServerProfile(method, {}, spec)


@pytest.mark.parametrize(
    ("ranges", "dense"),
    [
        ([[1, 4, 2], [6, 8, 0]], (2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0)),
        ([[5, 8, 0], [1, 4, 3]], (3, 3, 3, 3, 3, 0, 0, 0, 0, 0, 0)),
        ([[1, 4, 9]], (3,) * 11),
    ],
)
def test_the_schedule_is_read_as_vllm_reads_it(ranges: list[list[int]], dense: tuple[int, ...]) -> None:
    assert dense_schedule(ranges, 3, 10) == dense


@pytest.mark.parametrize("ranges", [[], [[2, 4, 1]], [[1, 4, 2], [4, 8, 1]], [[1, 4, -1]], [[1, 0, 1]], [[0, 4, 1]]])
def test_a_schedule_that_vllm_refuses_is_refused(ranges: list[list[int]]) -> None:
    with pytest.raises(ValueError, match=r"batch|empty|K ="):
        dense_schedule(ranges, 3, 10)


def test_async_scheduling_is_lost_where_vllm_loses_it() -> None:
    assert engine_config(profile()).async_scheduling
    assert not engine_config(profile("ngram")).async_scheduling
    assert not engine_config(profile("suffix")).async_scheduling
    assert engine_config(profile("eagle3")).async_scheduling
    assert not engine_config(profile("draft_model"), version="0.26.0").async_scheduling
    assert not engine_config(ServerProfile("sync", {"no-async-scheduling": True})).async_scheduling


def test_a_schedule_on_runner_v1_forces_piecewise_graphs() -> None:
    dynamic = engine_config(profile("ngram", 4, ((1, 8, 4), (9, 256, 0))))
    assert dynamic.graph_mode == "PIECEWISE"
    assert (
        "Overriding cudagraph_mode from FULL_AND_PIECEWISE to PIECEWISE for reliability. Use "
        "VLLM_USE_V2_MODEL_RUNNER=1 if you want to use full CUDA graphs."
    ) in dynamic.notes
    assert engine_config(profile("eagle3", 4, ((1, 8, 4),))).graph_mode == "FULL_AND_PIECEWISE"
    assert engine_config(profile("eagle3", 4, ((1, 8, 4),)), version="0.30.0").drafts_full_k


def test_lookup_window_defaults_to_five() -> None:
    assert (engine_config(profile("ngram")).lookup_min, engine_config(profile("ngram")).lookup_max) == (5, 5)
    both = engine_config(profile("ngram", prompt_lookup_min=2, prompt_lookup_max=5))
    assert (both.lookup_min, both.lookup_max) == (2, 5)
    assert engine_config(profile("ngram", prompt_lookup_max=3)).lookup_min == 3


def test_capture_sizes() -> None:
    assert capture_sizes(512)[:6] == (1, 2, 4, 8, 16, 24)
    assert capture_sizes(512)[-2:] == (496, 512)
    assert engine_config(ServerProfile("b", {"max-num-seqs": 8})).capture_sizes[-1] == 16
    assert engine_config(ServerProfile("b", {"enforce-eager": True})).graph_mode == "NONE"
