"""Answers have the shape of the captured ones: keys, their order, nesting, and where token ids and usage stand."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest


def shape(value: Any) -> Any:
    """Keys in order, lists by their first item, leaves by type name."""
    if isinstance(value, dict):
        return [(key, shape(item)) for key, item in value.items()]
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def captured_events(path: Path) -> list[Any]:
    lines = [line[6:] for line in path.read_text().split("\n") if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


async def test_chat_stream_has_the_captured_shape(run_server: Any, captures: Any) -> None:
    real = captured_events(captures / "vllm-0.32.0-cpu-ngram" / "chat-stream.sse")
    async with run_server() as sim:
        reply = await sim.chat(
            stream=True,
            return_token_ids=True,
            stream_options={"include_usage": True, "continuous_usage_stats": True},
        )
    mine = reply.events
    assert [shape(e) for e in (mine[0], mine[1], mine[-2], mine[-1])] == [
        shape(e) for e in (real[0], real[1], real[-2], real[-1])
    ]
    assert reply.body.endswith(b"data: [DONE]\n\n")
    assert [e["usage"]["completion_tokens"] for e in mine[1:-1]] == list(range(1, len(mine) - 1))
    assert mine[-2]["choices"][0]["finish_reason"] == "stop"
    assert (
        "".join(e["choices"][0]["delta"]["content"] for e in mine[:-1]) == "One two three. This is a common expression."
    )


async def test_completion_stream_has_the_captured_shape(run_server: Any, captures: Any) -> None:
    real = captured_events(captures / "vllm-0.32.0-cpu-ngram" / "completions-stream.sse")
    async with run_server() as sim:
        reply = await sim.complete(stream=True, max_tokens=12, ignore_eos=True, stream_options={"include_usage": True})
    mine = reply.events
    assert [shape(e) for e in (mine[0], mine[-2], mine[-1])] == [shape(e) for e in (real[0], real[-2], real[-1])]
    assert mine[-2]["choices"][0]["finish_reason"] == "length"
    assert mine[-1]["usage"]["completion_tokens"] == 12


async def test_stream_headers_are_the_captured_ones(run_server: Any, captures: Any) -> None:
    lines = (captures / "vllm-0.32.0-cpu-ngram" / "chat-stream.headers").read_text().splitlines()
    real = dict(line.split(": ", 1) for line in lines[1:] if line)
    async with run_server() as sim:
        reply = await sim.chat(stream=True, max_tokens=3)
    assert list(reply.headers) == list(real)
    assert {k: v for k, v in reply.headers.items() if k != "date"} == {k: v for k, v in real.items() if k != "date"}


async def test_each_event_is_one_chunk(run_server: Any) -> None:
    async with run_server() as sim:
        reply = await sim.chat(stream=True, max_tokens=8, ignore_eos=True)
    assert all(chunk.startswith(b"data: ") and chunk.endswith(b"\n\n") for chunk in reply.chunks)
    assert len(reply.chunks) == 1 + 8 + 1


async def test_speculation_puts_several_tokens_into_one_event(run_server: Any, scripted_core: Any) -> None:
    async with run_server(scripted_core(sizes=(3, 5))) as sim:
        reply = await sim.complete(
            stream=True, max_tokens=20, ignore_eos=True, return_token_ids=True, stream_options={"include_usage": True}
        )
    sizes = [len(e["choices"][0]["token_ids"]) for e in reply.events if e["choices"]]
    assert sizes == [1, 5, 3, 5, 3, 3]
    assert reply.events[0]["choices"][0]["prompt_token_ids"]
    assert reply.events[1]["choices"][0]["prompt_token_ids"] is None


async def test_fingerprint_moves_to_the_last_event_without_usage(run_server: Any) -> None:
    async with run_server() as sim:
        reply = await sim.complete(stream=True, max_tokens=3, ignore_eos=True)
        other = await sim.chat(stream=True, max_tokens=3, ignore_eos=True)
    for events in (reply.events, other.events):
        assert events[-1]["system_fingerprint"].startswith("vllm-0.32.0-")
        assert len(events[-1]["system_fingerprint"]) == len("vllm-0.32.0-") + 8
        assert all("system_fingerprint" not in e for e in events[:-1])


async def test_whole_answers(run_server: Any) -> None:
    async with run_server() as sim:
        chat = (await sim.chat()).json
        text = (await sim.complete(max_tokens=4, ignore_eos=True, return_token_ids=True)).json
    assert list(chat) == [
        "id", "object", "created", "model", "choices", "service_tier", "system_fingerprint", "usage", "prompt_logprobs",
        "prompt_token_ids", "prompt_text", "kv_transfer_params", "ec_transfer_params", "metrics",
    ]  # fmt: skip
    assert chat["object"] == "chat.completion"
    assert chat["choices"][0]["message"]["content"] == "One two three. This is a common expression."
    assert chat["choices"][0]["finish_reason"] == "stop"
    assert chat["usage"]["total_tokens"] == chat["usage"]["prompt_tokens"] + chat["usage"]["completion_tokens"]
    assert list(text["choices"][0]) == [
        "index", "text", "logprobs", "finish_reason", "stop_reason", "token_ids", "prompt_logprobs", "prompt_token_ids",
        "routed_experts",
    ]  # fmt: skip
    assert len(text["choices"][0]["token_ids"]) == 4 == text["usage"]["completion_tokens"]


async def test_logprobs(run_server: Any) -> None:
    async with run_server() as sim:
        text = (await sim.complete(max_tokens=5, logprobs=3)).json["choices"][0]
        zero = (await sim.complete(max_tokens=5, logprobs=0)).json["choices"][0]
        chat = (await sim.chat(max_tokens=5, logprobs=True, top_logprobs=2)).json["choices"][0]
        streamed = (await sim.complete(stream=True, max_tokens=5, logprobs=1)).events
    found = text["logprobs"]
    assert "".join(found["tokens"]) == text["text"]
    assert found["text_offset"] == [sum(len(t) for t in found["tokens"][:i]) for i in range(5)]
    for token, value, top in zip(found["tokens"], found["token_logprobs"], found["top_logprobs"], strict=True):
        assert top[token] == value == max(top.values())
        assert len(top) == 3
    assert all(
        list(top) == [token]
        for top, token in zip(zero["logprobs"]["top_logprobs"], zero["logprobs"]["tokens"], strict=True)
    )
    assert zero["logprobs"]["token_logprobs"] == found["token_logprobs"]
    assert [len(e["top_logprobs"]) for e in chat["logprobs"]["content"]] == [2] * 5
    assert list(chat["logprobs"]["content"][0]) == ["token", "logprob", "bytes", "top_logprobs"]
    offsets = [e["choices"][0]["logprobs"]["text_offset"][0] for e in streamed]
    assert offsets == found["text_offset"]


async def test_prompts_of_every_kind_reach_the_engine(run_server: Any) -> None:
    async with run_server() as sim:
        for prompt in ("abc def", ["abc def"], [20, 21, 22], [[20, 21, 22]]):
            reply = await sim.complete(prompt=prompt, max_tokens=1)
            assert reply.status == 200
        lengths = [len(r.prompt_token_ids) for r in sim.core.added]
    assert lengths[0] == lengths[1]
    assert lengths[2:] == [3, 3]


async def test_sampling_fields_reach_the_engine(run_server: Any) -> None:
    async with run_server() as sim:
        await sim.complete(max_tokens=2, temperature=0.5, seed=7, ignore_eos=True)
        await sim.ask("POST", "/v1/completions", {"prompt": "x"})
        first, second = sim.core.added
    assert (first.temperature, first.seed, first.ignore_eos, first.max_tokens) == (0.5, 7, True, 2)
    assert (second.temperature, second.ignore_eos, second.max_tokens) == (1.0, False, 16)


async def test_a_request_without_a_seed_draws_anew_each_time(run_server: Any) -> None:
    async with run_server() as sim:
        for _ in range(2):
            await sim.complete(max_tokens=2, temperature=1.0)
        first, second = sim.core.added
    assert first.seed != second.seed


async def test_max_tokens_default_of_chat_is_the_rest_of_the_context(run_server: Any) -> None:
    async with run_server() as sim:
        await sim.chat()
        request = sim.core.added[0]
    assert request.max_tokens == 2048 - len(request.prompt_token_ids)


@pytest.mark.parametrize("level", ["summary", "detailed"])
async def test_speculation_metrics_of_one_request(
    run_server: Any, scripted_core: Any, sim_spec: Any, level: Any
) -> None:
    spec = dataclasses.replace(sim_spec, spec_metrics=level)
    async with run_server(scripted_core(sizes=(5, 3)), spec) as sim:
        body = {"max_tokens": 12, "ignore_eos": True}
        streamed = await sim.complete(stream=True, stream_options={"include_usage": True}, **body)
        whole = await sim.complete(**body)
    found = streamed.events[-1]["metrics"]["speculative_decoding"]
    assert found["num_spec_steps"] == 3
    assert found["num_draft_tokens"] == 12
    assert found["num_accepted_draft_tokens"] == 8
    assert found["mean_acceptance_length"] == pytest.approx(1 + 8 / 3)
    assert found["acceptance_histogram"] == [0, 0, 2, 0, 1]
    assert ("per_step_accepted" in found) == (level == "detailed")
    kept = whole.json["metrics"]["speculative_decoding"]
    assert {k: v for k, v in kept.items() if v is not None} == found


async def test_speculation_metrics_without_drafts(run_server: Any, sim_spec: Any) -> None:
    spec = dataclasses.replace(sim_spec, spec_metrics="summary")
    async with run_server(spec=spec) as sim:
        found = (await sim.complete(max_tokens=1)).json["metrics"]["speculative_decoding"]
    assert (found["mean_acceptance_length"], found["draft_acceptance_rate"]) == (1.0, 0.0)
