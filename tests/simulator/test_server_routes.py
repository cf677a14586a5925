"""The small routes: models, version, tokenize and the rest."""

import json
from typing import Any


def keys(value: Any) -> Any:
    if isinstance(value, dict):
        return [(name, keys(item)) for name, item in value.items()]
    return [keys(value[0])] if isinstance(value, list) and value else None


async def test_models_and_version_are_the_captured_ones(run_server: Any, captures: Any) -> None:
    folder = captures / "vllm-0.32.0-cpu-ngram"
    async with run_server() as sim:
        models = await sim.ask("GET", "/v1/models")
        version = await sim.ask("GET", "/version")
    real = json.loads((folder / "models.json").read_text())
    assert keys(models.json) == keys(real)
    varying = {"created", "id", "permission"}
    assert {k: v for k, v in models.json["data"][0].items() if k not in varying} == {
        k: v for k, v in real["data"][0].items() if k not in varying
    }
    assert version.body == (folder / "version.json").read_bytes().strip()


async def test_health_ping_and_load(run_server: Any) -> None:
    async with run_server() as sim:
        for path in ("/health", "/ping"):
            reply = await sim.ask("GET", path)
            assert (reply.status, reply.body) == (200, b"")
        assert (await sim.ask("GET", "/load")).json == {"server_load": 0}


async def test_tokenize_and_back(run_server: Any) -> None:
    async with run_server() as sim:
        found = (await sim.ask("POST", "/tokenize", {"prompt": "def f(x):\n    return x"})).json
        back = (await sim.ask("POST", "/detokenize", {"tokens": found["tokens"]})).json
        strings = (await sim.ask("POST", "/tokenize", {"prompt": "a b", "return_token_strs": True})).json
        bad = await sim.ask("POST", "/detokenize", {"tokens": [10**30]})
        empty = await sim.ask("POST", "/tokenize", {})
    assert list(found) == ["count", "max_model_len", "tokens", "token_strs"]
    assert (found["count"], found["max_model_len"], found["token_strs"]) == (len(found["tokens"]), 2048, None)
    assert back == {"prompt": "def f(x):\n    return x"}
    assert "".join(strings["token_strs"]) == "a b"
    assert bad.status == 400
    assert empty.status == 400


async def test_tokenize_counts_a_chat_as_the_server_does(run_server: Any) -> None:
    messages = [{"role": "user", "content": "Count to three."}]
    async with run_server() as sim:
        found = (await sim.ask("POST", "/tokenize", {"messages": messages})).json
        usage = (await sim.chat(max_tokens=1)).json["usage"]
    assert found["count"] == usage["prompt_tokens"]


async def test_text_parts_are_joined(run_server: Any) -> None:
    parts = [{"role": "user", "content": [{"type": "text", "text": "Count to three."}]}]
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]
    async with run_server() as sim:
        plain = (await sim.chat(max_tokens=1)).json["usage"]["prompt_tokens"]
        assert (await sim.chat(messages=parts, max_tokens=1)).json["usage"]["prompt_tokens"] == plain
        assert (await sim.chat(messages=image, max_tokens=1)).status == 400


async def test_reset_prefix_cache(run_server: Any) -> None:
    async with run_server() as sim:
        assert (await sim.ask("POST", "/reset_prefix_cache")).json == {"success": True}


async def test_server_info(run_server: Any) -> None:
    async with run_server() as sim:
        text = (await sim.ask("GET", "/server_info")).json
        data = (await sim.ask("GET", "/server_info?config_format=json")).json
        bad = await sim.ask("GET", "/server_info?config_format=xml")
    assert list(text) == ["vllm_config", "vllm_env", "system_env"]
    assert isinstance(text["vllm_config"], str)
    assert isinstance(data["vllm_config"], dict)
    assert bad.status == 400
