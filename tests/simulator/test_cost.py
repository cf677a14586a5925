"""The cost model: regimes, staircase, launch modes, API process; and what was measured on an H200."""

from dataclasses import replace

import pytest

from loadgen.profiles.model import BatchSchedule, ServerProfile, SpeculativeConfig
from loadgen.simulator.config import EngineConfig, capture_sizes, engine_config
from loadgen.simulator.core import SimulatedCore
from loadgen.simulator.cost import ApiProcess, CostModel, StepShape
from loadgen.simulator.hardware import PRESETS, Hardware
from loadgen.simulator.model import SimRequest
from loadgen.simulator.text import TextModel
from loadgen.simulator.virtual import VirtualLoop, VirtualResult, run_closed_loop

GPU = PRESETS["rtx4090-8b-int4"]
H200 = PRESETS["h200-8b"]


def decode(requests: int, k: int = 0, context: int = 500) -> StepShape:
    tokens = requests * (1 + k)
    return StepShape(
        tokens, requests, 0, tokens, requests * context, requests * k * context, k, requests, requests * context, k
    )


def model(**changes: object) -> CostModel:
    config = replace(EngineConfig("b", capture_sizes=capture_sizes(512)), **changes)  # type: ignore[arg-type]  # any field
    return CostModel(config, GPU)


def test_one_stream_is_bound_by_weights_and_a_large_batch_by_compute() -> None:
    cost = model()
    weights = GPU.weight_bytes / GPU.bandwidth
    assert cost.terms(decode(1))["gemm"] == pytest.approx(weights, rel=0.01)
    compute = 256 * 2 * (GPU.parameters + GPU.head_parameters) / GPU.flops
    assert cost.terms(decode(256))["gemm"] == pytest.approx(compute, rel=0.01)
    assert 150 < 1 / cost.seconds(decode(1)) < 200


def test_tokens_are_padded_to_the_next_graph_and_not_beyond_the_last() -> None:
    cost = model()
    assert [cost.padded(n) for n in (1, 3, 9, 17, 250, 257, 512, 513)] == [1, 4, 16, 24, 256, 272, 512, 513]
    assert cost.terms(decode(33))["gemm"] == pytest.approx(cost.terms(decode(40))["gemm"], rel=0.03)


def test_launch_modes() -> None:
    plain = model()
    assert plain.launch_mode(decode(8)) == "full"
    assert plain.launch_mode(decode(8)._replace(uniform_k=-1)) == "piecewise"
    assert plain.launch_mode(decode(513)) == "eager"
    assert model(graph_mode="PIECEWISE").launch_mode(decode(8)) == "piecewise"
    assert model(graph_mode="NONE").launch_mode(decode(1)) == "eager"
    v1 = model(method="ngram", k=4, runner="V1")
    assert v1.launch_mode(decode(8, 4)) == "full"
    assert v1.launch_mode(decode(8, 0)) == "piecewise"
    assert model(method="eagle3", k=4).launch_mode(decode(8, 2)) == "full"


def test_lost_async_scheduling_adds_the_hosts_time() -> None:
    asynchronous, synchronous = model(), model(async_scheduling=False)
    host = GPU.host_step_s + 8 * GPU.host_request_s
    assert synchronous.seconds(decode(8)) - asynchronous.seconds(decode(8)) == pytest.approx(host)


def test_draft_costs_by_method() -> None:
    shape = decode(8, 4)
    assert model().draft_s(shape) == 0.0
    lookup = model(method="ngram", k=4).draft_s(shape)
    assert lookup == pytest.approx(GPU.lookup_step_s + 8 * GPU.lookup_request_s + 4000 * GPU.lookup_token_s)
    assert model(method="ngram", k=4).draft_s(shape._replace(draft_k=0)) == 0.0
    eagle = model(method="eagle3", k=4)
    assert eagle.draft_s(shape) > 3 * eagle.draft_s(decode(8, 1))
    # K = 0 still runs the drafter once, to keep its KV in step (vllm#49548).
    assert eagle.draft_s(decode(8, 0)) > 0
    ignoring = model(method="eagle3", k=4, drafts_full_k=True)
    assert ignoring.draft_s(decode(8, 0)) == pytest.approx(ignoring.draft_s(decode(8, 0)._replace(draft_k=4)))


def test_the_api_process_is_serial() -> None:
    api = ApiProcess(GPU)
    first = api.deliver(1.0, 1)
    assert first == pytest.approx(1.0 + GPU.api_chunk_s + GPU.api_token_s)
    assert api.deliver(1.0, 1) == pytest.approx(first + GPU.api_chunk_s + GPU.api_token_s)
    assert api.deliver(9.0, 1) == pytest.approx(9.0 + GPU.api_chunk_s + GPU.api_token_s)
    assert api.busy_s == pytest.approx(3 * (GPU.api_chunk_s + GPU.api_token_s))


def h200(
    k: int,
    level: int,
    *,
    schedule: BatchSchedule | None = None,
    capture: int | None = None,
    hardware: Hardware = H200,
) -> VirtualResult:
    """One level as in h200.md: 300-token prompts, forced lengths, all workers at once, vLLM 0.26."""
    rates = (0.7, 0.49, 0.343)[:k]
    spec = SpeculativeConfig("draft_model", k, {}, schedule, synthetic_acceptance_rates=rates) if k else None
    settings = {"max-cudagraph-capture-size": capture} if capture else {}
    core = SimulatedCore(engine_config(ServerProfile("p", settings, spec), version="0.26.0"), hardware, text=TEXT)

    def request(index: int) -> SimRequest:
        ids = tuple(range(1000 + 300 * index, 1300 + 300 * index))
        return SimRequest(str(index), ids, 512, ignore_eos=True)

    return run_closed_loop(core, request, VirtualLoop(level, max(6, 2 * level), spread_s=0.0))


TEXT = TextModel()


@pytest.mark.parametrize(
    ("level", "baseline", "k3", "k1"),
    [
        (1, 208, 1.63, 1.18),
        (2, 411, 1.52, 1.18),
        (4, 810, 1.51, 1.11),
        (8, 1539, 1.47, 1.18),
        (16, 3042, 1.35, 1.09),
        (32, 5611, 1.35, 1.08),
        (64, 9466, 1.10, 0.97),
        (128, 13810, 0.63, 0.86),
    ],
)
def test_the_h200_preset_follows_what_was_measured(level: int, baseline: float, k3: float, k1: float) -> None:
    plain = h200(0, level).tokens_per_s
    assert plain == pytest.approx(baseline, rel=0.15)
    three = h200(3, level)
    assert three.tokens_per_s / plain == pytest.approx(k3, rel=0.15)
    assert three.mean_acceptance_length == pytest.approx(2.53, rel=0.05)
    assert h200(1, level).tokens_per_s / plain == pytest.approx(k1, rel=0.15)


def test_the_drop_at_128_comes_from_the_capture_limit() -> None:
    limited, raised = h200(3, 128), h200(3, 128, capture=1024)
    assert raised.tokens_per_s > 1.15 * limited.tokens_per_s


def test_a_schedule_on_runner_v1_pays_for_piecewise_graphs() -> None:
    # h200.md: 0.93 with a schedule against 1.63 without, at one request.
    schedule = ((1, 32, 3), (33, 128, 1), (129, 512, 0))
    assert h200(3, 1, schedule=schedule).tokens_per_s / h200(0, 1).tokens_per_s == pytest.approx(0.93, rel=0.15)


@pytest.mark.parametrize(("level", "speedup"), [(1, 0.46), (8, 0.61), (32, 0.50), (128, 0.48)])
def test_a_heavy_draft_never_pays(level: int, speedup: float) -> None:
    heavy = h200(3, level, hardware=PRESETS["h200-8b-draft0.6b"])
    assert heavy.tokens_per_s / h200(0, level).tokens_per_s == pytest.approx(speedup, rel=0.2)
