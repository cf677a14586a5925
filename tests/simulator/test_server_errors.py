"""Errors have vLLM's status, type, param and words; what the simulator lacks is refused by name."""

import dataclasses
import json
from typing import Any

import pytest


def captured_error(captures: Any, name: str) -> tuple[bytes, int]:
    body, status = (captures / "vllm-0.32.0-cpu-ngram" / name).read_bytes().strip().split(b"\n")
    return body, int(status)


async def test_c43_max_tokens_beyond_the_context(run_server: Any, captures: Any) -> None:
    body, status = captured_error(captures, "error-too-long.txt")
    async with run_server() as sim:
        reply = await sim.complete(max_tokens=999999)
    assert (reply.body, reply.status) == (body, status)


async def test_c59_unknown_model(run_server: Any, captures: Any) -> None:
    body, status = captured_error(captures, "error-unknown-model.txt")
    async with run_server() as sim:
        reply = await sim.complete(model="nope")
        chat = await sim.chat(model="nope")
    assert (reply.body, reply.status) == (body, status) == (chat.body, chat.status)


async def test_min_p_with_speculation(run_server: Any, captures: Any) -> None:
    body, status = captured_error(captures, "error-min-p.txt")
    async with run_server() as sim:
        reply = await sim.complete(min_p=0.1)
        bias = await sim.chat(logit_bias={"5": 1.0})
    assert (reply.body, reply.status) == (body, status) == (bias.body, bias.status)


async def test_min_p_without_speculation(run_server: Any, sim_spec: Any) -> None:
    async with run_server(spec=dataclasses.replace(sim_spec, num_speculative_tokens=0)) as sim:
        assert (await sim.complete(min_p=0.1, max_tokens=1)).status == 200


async def test_c43_prompt_longer_than_the_context(run_server: Any) -> None:
    async with run_server() as sim:
        reply = await sim.complete(prompt=[20] * 3000, max_tokens=1)
        full = await sim.complete(prompt=[20] * 2048, max_tokens=1)
        added = sim.core.added
    error = reply.json["error"]
    assert reply.status == 400
    assert error["param"] == "input_tokens"
    assert "maximum context length is 2048 tokens" in error["message"]
    assert full.status == 400
    assert added == []


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"n": 2}, "n"),
        ({"stop": ["x"]}, "stop"),
        ({"stop_token_ids": [3]}, "stop_token_ids"),
        ({"echo": True}, "echo"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": 3}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"logprobs": 21}, "logprobs"),
        ({"logprobs": -1}, "logprobs"),
        ({"prompt": ["a", "b"]}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [-1]}, "prompt"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"suffix": "x"}, "suffix"),
        ({"min_tokens": 5}, "min_tokens"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
    ],
)
async def test_refused_fields(run_server: Any, body: Any, param: str) -> None:
    async with run_server() as sim:
        reply = await sim.complete(**body)
        added = sim.core.added
    assert reply.status == 400
    assert reply.json["error"]["param"] == param
    assert list(reply.json["error"]) == ["message", "type", "param", "code"]
    assert added == []


@pytest.mark.parametrize("field", ["stop", "stop_token_ids"])
async def test_empty_stops_are_fine(run_server: Any, field: str) -> None:
    async with run_server() as sim:
        assert (await sim.complete(max_tokens=1, **{field: []})).status == 200


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"prompt": {}}', b"\xff\xfe", b"", b'{"max_tokens": "many"}'])
async def test_malformed_bodies(run_server: Any, body: bytes) -> None:
    async with run_server() as sim:
        reply = await sim.ask("POST", "/v1/completions", body)
    assert reply.status == 400
    assert json.loads(reply.body)["error"]["code"] == 400


async def test_unknown_routes_and_methods(run_server: Any) -> None:
    async with run_server() as sim:
        missing = await sim.ask("GET", "/v1/nothing")
        wrong = await sim.ask("GET", "/v1/completions")
        media = await sim.ask("POST", "/v1/completions", {"prompt": "x"}, {"content-type": "text/plain"})
    assert (missing.status, missing.json["error"]["message"]) == (404, "Not Found")
    assert (wrong.status, wrong.headers["allow"]) == (405, "POST")
    assert (media.status, media.json["error"]["type"]) == (400, "Bad Request")
