"""The engine core: scheduling, counts, K's one-step lag, trimming, preemption, prefix cache, death."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.simulator.config import EngineConfig, capture_sizes
from loadgen.simulator.core import EngineDeadError, SimulatedCore
from loadgen.simulator.hardware import PRESETS
from loadgen.simulator.model import SimRequest, StepResult
from loadgen.simulator.noise import MILD, Noise
from loadgen.simulator.text import TextModel
from loadgen.simulator.tokens import encode, render_chat

GPU = PRESETS["rtx4090-8b-int4"]
PLAIN = EngineConfig("baseline", capture_sizes=capture_sizes(512))
NGRAM = replace(
    PLAIN, name="ngram", method="ngram", k=4, lookup_min=2, lookup_max=5, async_scheduling=False, runner="V1"
)
ALWAYS = replace(PLAIN, name="self", method="draft_model", k=3, synthetic_rates=(1.0, 1.0, 1.0))
CODE = "\n".join(f"def f_{i}(a, b):\n    return a * {i} + b - offset\n" for i in range(10))


def request(tag: int, max_tokens: int = 64, *, ignore_eos: bool = False) -> SimRequest:
    ids = encode(render_chat([("user", f"{tag}: rewrite this code.\n```\n{CODE}```")]))
    return SimRequest(f"r{tag}", tuple(ids), max_tokens, ignore_eos=ignore_eos)


def drain(core: SimulatedCore) -> list[StepResult]:
    steps, now = [], 0.0
    while (step := core.step(now)) is not None:
        steps.append(step)
        now += step.duration_s
    return steps


def texts(steps: list[StepResult]) -> dict[str, tuple[int, ...]]:
    out: dict[str, tuple[int, ...]] = {}
    for step in steps:
        for output in step.outputs:
            out[output.request_id] = out.get(output.request_id, ()) + output.new_token_ids
    return out


def run(config: EngineConfig, *requests: SimRequest) -> list[StepResult]:
    core = SimulatedCore(config, GPU)
    for one in requests:
        core.add(one, 0.0)
    return drain(core)


def test_every_profile_says_the_same_text() -> None:
    suffix = replace(PLAIN, name="suffix", method="suffix", k=8, async_scheduling=False)
    asked = [request(i, 100) for i in range(5)]
    plain = texts(run(PLAIN, *asked))
    assert plain == texts(run(NGRAM, *asked)) == texts(run(suffix, *asked)) == texts(run(ALWAYS, *asked))
    answers = {one.request_id: TextModel().continuation(one.prompt_token_ids).tokens for one in asked}
    assert all(tuple(answers[name][: len(tokens)]) == tokens for name, tokens in plain.items())


def test_a_draft_that_is_always_right_counts_as_vllm_counts() -> None:
    # Seen on a CPU vLLM with the target as its own draft, K = 3, 64 tokens: 16 drafts, 48 accepted, 17 outputs.
    steps = run(ALWAYS, request(1, 64, ignore_eos=True))
    outputs = [output for step in steps for output in step.outputs]
    assert [len(o.new_token_ids) for o in outputs] == [1] + [4] * 15 + [3]
    assert sum(o.drafted > 0 for o in outputs) == 16
    assert sum(o.accepted for o in outputs) == 48
    assert outputs[-1].finish_reason == "length"


def test_a_natural_end_stops_and_ignore_eos_goes_on() -> None:
    stopped = run(NGRAM, request(1, 2000))
    assert stopped[-1].outputs[0].finish_reason == "stop"
    forced = texts(run(NGRAM, request(1, 2000, ignore_eos=True)))["r1"]
    assert len(forced) == 2000
    assert forced[: len(texts(stopped)["r1"])] == texts(stopped)["r1"]


def test_a_long_prompt_comes_in_chunks_beside_decodes() -> None:
    core = SimulatedCore(replace(PLAIN, max_num_batched_tokens=64), GPU)
    core.add(SimRequest("short", (100, 101, 102), 50), 0.0)
    core.step(0.0)
    core.add(SimRequest("long", tuple(range(1000, 1200)), 4), 0.0)
    steps = drain(core)
    chunks = [step.prompt_tokens for step in steps if step.prompt_tokens]
    assert chunks == [63, 63, 63, 11]
    assert all(step.outputs[0].request_id == "short" for step in steps[:4])


def test_max_num_seqs_bounds_the_batch_and_the_queue_is_fifo() -> None:
    core = SimulatedCore(replace(PLAIN, max_num_seqs=2), GPU)
    for tag in range(4):
        core.add(request(tag, 8 + tag), 0.0)
    first = core.step(0.0)
    assert first is not None
    assert first.admitted == ("r0", "r1")
    assert (core.state().running, core.state().waiting) == (2, 2)
    admitted = [name for step in drain(core) for name in step.admitted]
    assert admitted == ["r2", "r3"]


def test_k_follows_the_batch_with_one_step_of_lag() -> None:
    schedule = (3, 3, 0, 0, 0)
    core = SimulatedCore(replace(ALWAYS, schedule=schedule, max_num_seqs=4), GPU)
    core.add(request(1, 40, ignore_eos=True), 0.0)
    core.step(0.0)
    core.add(request(2, 40, ignore_eos=True), 0.0)
    both = core.step(0.0)
    assert both is not None
    assert [o.drafted for o in both.outputs] == [3, 0]  # K = 3 was picked when r1 was alone
    assert both.draft_tokens_k == 0
    later = core.step(0.0)
    assert later is not None
    assert [o.drafted for o in later.outputs] == [0, 0]
    core.abort("r2")
    alone = [core.step(0.0), core.step(0.0)]
    assert [step.outputs[0].drafted for step in alone if step] == [0, 3]


def test_drafts_are_trimmed_at_max_model_len_only() -> None:
    prompt = request(1).prompt_token_ids
    steps = run(replace(ALWAYS, max_model_len=len(prompt) + 10), request(1, 500, ignore_eos=True))
    assert len(texts(steps)["r1"]) == 10
    assert [o.drafted for step in steps for o in step.outputs] == [0, 3, 3, 0]


def test_a_prompt_that_fills_the_model_is_refused() -> None:
    core = SimulatedCore(replace(PLAIN, max_model_len=100), GPU)
    with pytest.raises(ValueError, match="max_model_len"):
        core.add(SimRequest("x", tuple(range(100)), 1), 0.0)
    core.add(SimRequest("y", tuple(range(99)), 5), 0.0)
    assert len(texts(drain(core))["y"]) == 1


def test_the_prefix_cache_hits_all_but_the_last_token() -> None:
    core = SimulatedCore(PLAIN, GPU)
    core.add(SimRequest("a", tuple(range(1000, 1064)), 4), 0.0)
    first = drain(core)
    core.add(SimRequest("b", tuple(range(1000, 1064)), 4), 0.0)
    second = drain(core)
    assert (first[0].prefix_queries, first[0].prefix_hits) == (64, 0)
    assert (second[0].prefix_queries, second[0].prefix_hits) == (64, 48)
    assert second[0].outputs[0].cached_prompt_tokens == 48
    assert second[0].prompt_tokens == 16
    assert core.reset_prefix_cache()
    dropped = SimulatedCore(replace(PLAIN, drop_cached_block=True), GPU)
    for name in ("a", "b"):
        dropped.add(SimRequest(name, tuple(range(1000, 1064)), 4), 0.0)
        last = drain(dropped)
    assert last[0].prefix_hits == 32


def test_a_full_cache_preempts_the_last_and_loses_no_token() -> None:
    small = replace(NGRAM, num_gpu_blocks=40)
    asked = [request(i, 120, ignore_eos=True) for i in range(4)]
    core = SimulatedCore(small, GPU)
    for one in asked:
        core.add(one, 0.0)
    steps = drain(core)
    assert sum(step.preempted for step in steps) > 0
    assert texts(steps) == texts(run(NGRAM, *asked))
    assert core.state().kv_cache_usage == 0.0


def test_suffix_with_a_schedule_dies_as_vllms_engine_does() -> None:
    config = replace(
        PLAIN, name="suffix", method="suffix", k=8, schedule=(8, 8, 2, 2), dies_on_dynamic_k=True, max_num_seqs=3
    )
    core = SimulatedCore(config, GPU)
    core.add(request(1), 0.0)
    core.step(0.0)
    core.add(request(2), 0.0)
    with pytest.raises(EngineDeadError, match="AssertionError"):
        core.step(0.0)
    with pytest.raises(EngineDeadError):
        core.step(0.0)


def test_suffix_learns_across_requests() -> None:
    core = SimulatedCore(replace(PLAIN, name="suffix", method="suffix", k=8), GPU)
    counts = []
    for _ in range(3):
        core.add(SimRequest("chat", tuple(encode(render_chat([("user", "Why do people walk?")]))), 200), 0.0)
        counts.append(len(drain(core)))
    assert counts[1] < 0.4 * counts[0]


def test_compilation_delays_the_first_request_only() -> None:
    core = SimulatedCore(NGRAM, GPU, noise=MILD)
    core.add(request(1), 0.0)
    cold = sum(step.duration_s for step in drain(core))
    core.reset_prefix_cache()
    core.add(request(1), 0.0)
    warm = sum(step.duration_s for step in drain(core))
    assert cold - warm == pytest.approx(GPU.first_request_s + GPU.first_draft_s, rel=0.1)


@given(
    st.lists(st.tuples(st.integers(1, 90), st.integers(1, 40), st.booleans()), min_size=1, max_size=12),
    st.integers(9, 60),
    st.integers(1, 4),
    st.integers(5, 64),
)
@settings(max_examples=60, deadline=None)
def test_whatever_comes_every_request_ends_with_all_its_tokens(
    asked: list[tuple[int, int, bool]], blocks: int, seqs: int, budget: int
) -> None:
    config = replace(
        NGRAM, num_gpu_blocks=blocks, max_num_seqs=seqs, max_num_batched_tokens=budget, k=3, max_model_len=140
    )
    core = SimulatedCore(config, GPU)
    want: dict[str, int] = {}
    for at, (length, tokens, loops) in enumerate(asked):
        core.add(SimRequest(str(at), tuple(range(100, 100 + length)), tokens, ignore_eos=loops), 0.0)
        natural = core.text.continuation(tuple(range(100, 100 + length))).natural_length
        room = min(tokens, core.max_model_len - length)
        want[str(at)] = room if loops else min(room, natural)
    steps = drain(core)
    assert {name: len(tokens) for name, tokens in texts(steps).items()} == want
    assert all(step.scheduled_requests <= seqs for step in steps)
    assert core.state().kv_cache_usage == 0.0


def test_flips_turn_only_near_ties_and_only_when_asked() -> None:
    asked = [request(i, 100) for i in range(6)]
    said = []
    for config in (PLAIN, NGRAM):
        core = SimulatedCore(config, GPU, noise=Noise(flip_share=0.5))
        for one in asked:
            core.add(one, 0.0)
        said.append(texts(drain(core)))
    differ = [name for name in said[0] if said[0][name] != said[1][name]]
    assert differ
    for one in asked:
        left, right = said[0][one.request_id], said[1][one.request_id]
        at = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), None)
        if at is None:
            continue
        there = TextModel().continuation((*one.prompt_token_ids, *left[:at]))
        assert there.is_near_tie(0)
        assert {left[at], right[at]} == {token for token, _ in there.top_logprobs(0, 2)}


def test_an_aborted_request_frees_its_blocks() -> None:
    core = SimulatedCore(NGRAM, GPU)
    core.add(request(1), 0.0)
    core.add(request(2), 0.0)
    core.step(0.0)
    core.abort("r1")
    core.abort("unknown")
    assert core.state().running == 1
    drain(core)
    assert core.state().kv_cache_usage == 0.0
