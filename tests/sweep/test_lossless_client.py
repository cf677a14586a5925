"""What the same-quality test makes of a server's replies."""

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from loadgen.errors import ServerError
from loadgen.sweep.lossless_client import Ask, HttpServer
from loadgen.sweep.lossless_journal import Journal
from loadgen.workloads.base import Message, Prompt

Handler = Callable[[httpx2.Request], httpx2.Response]


def server(handler: Handler) -> HttpServer:
    return HttpServer("http://127.0.0.1:1", "m", lambda: httpx2.MockTransport(handler))


def completion(**choice: Any) -> httpx2.Response:
    return httpx2.Response(200, json={"choices": [{"index": 0, "text": "ab", **choice}]})


async def test_tokens_and_log_probabilities_are_read_by_id() -> None:
    asked: list[dict[str, Any]] = []

    def handle(request: httpx2.Request) -> httpx2.Response:
        asked.append(json.loads(request.content))
        logprobs = {"token_logprobs": [-0.1], "top_logprobs": [{"token_id:7": -0.1, "token_id:9": -2.0}]}
        return completion(token_ids=[7], logprobs=logprobs)

    async with server(handle) as one:
        answer = await one.answer(Ask((1, 2), 1, logprobs=20, seed=3))

    assert (answer.tokens, answer.chosen, answer.top) == ((7,), (-0.1,), ({7: -0.1, 9: -2.0},))
    assert asked[0]["prompt"] == [1, 2]
    assert (asked[0]["seed"], asked[0]["logprobs"], asked[0]["return_tokens_as_token_ids"]) == (3, 20, True)


async def test_a_stream_tells_the_tokens_of_each_chunk() -> None:
    chunks = [[5], [6, 7, 8], [9, 2]]
    events = [f"data: {json.dumps({'choices': [{'text': 'x', 'token_ids': ids}]})}\n\n" for ids in chunks]
    body = "".join(events) + 'data: {"choices":[],"usage":{}}\n\ndata: [DONE]\n\n'
    async with server(lambda _: httpx2.Response(200, text=body)) as one:
        answer = await one.answer(Ask((1,), 6, stream=True))

    assert answer.tokens == (5, 6, 7, 8, 9, 2)
    assert answer.chunks == (1, 3, 2)


async def test_a_server_without_token_ids_is_asked_for_the_texts_ids() -> None:
    def handle(request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        if request.url.path == "/tokenize":
            assert (body["prompt"], body["add_special_tokens"]) == ("ab", False)
            return httpx2.Response(200, json={"tokens": [11, 12]})
        return completion()

    async with server(handle) as one:
        assert (await one.answer(Ask((1,), 2))).tokens == (11, 12)


async def test_chat_messages_are_tokenized_with_their_template() -> None:
    def handle(request: httpx2.Request) -> httpx2.Response:
        assert json.loads(request.content)["messages"] == [{"role": "user", "content": "Hi"}]
        return httpx2.Response(200, json={"tokens": [1, 2, 3]})

    async with server(handle) as one:
        assert await one.tokenize(Prompt("p", 4, messages=(Message("user", "Hi"),))) == (1, 2, 3)
        assert await one.tokenize(Prompt("p", 4, token_ids=(8, 9))) == (8, 9)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (httpx2.Response(404, text="Not Found"), "answers 404"),
        (completion(token_ids=[7], logprobs={"top_logprobs": [{" the": -0.1}]}), "by their text"),
    ],
)
async def test_a_server_that_cannot_be_tested_says_so_in_one_sentence(reply: httpx2.Response, words: str) -> None:
    async with server(lambda _: reply) as one:
        with pytest.raises(ServerError, match=words):
            await Journal().ask_all("phase", one, [Ask((1,), 1, logprobs=1)] * 3, 2)


async def test_an_error_inside_a_stream_is_no_answer() -> None:
    body = 'data: {"error":{"message":"EngineCore died"}}\n\ndata: [DONE]\n\n'
    async with server(lambda _: httpx2.Response(200, text=body)) as one:
        with pytest.raises(ServerError, match="EngineCore died"):
            await one.answer(Ask((1,), 2, stream=True))
