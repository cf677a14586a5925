"""What counts as ready, against a real socket in this process."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from loadgen.engines.readiness import Prober, Readiness
from loadgen.errors import ServerError

Answer = tuple[int, Any]
Route = Callable[[str, int], Answer]
"""(path, how often this path was asked before) → answer."""

MODELS = (200, {"data": [{"id": "m", "max_model_len": 99}, {"id": "adapter"}]})
TEXT = (200, {"choices": [{"text": "ok"}]})
NO_TEXT = (200, {"choices": [{"text": ""}]})
ERROR = {"error": {"message": "no\nluck"}}


def good(path: str, count: int) -> Answer:
    return {"/health": (200, ""), "/v1/models": MODELS, "/v1/completions": TEXT}.get(path, (404, ERROR))


@asynccontextmanager
async def serving(route: Route) -> AsyncIterator[tuple[str, list[str]]]:
    asked: list[str] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
        path = head.split(b" ")[1].decode()
        status, body = route(path, asked.count(path))
        asked.append(path)
        data = json.dumps(body).encode()
        writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (status, len(data), data))
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handle(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()  # the port probe connects and says nothing

    server = await asyncio.start_server(guarded, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


async def probe(route: Route, timeout_s: float = 60.0) -> tuple[Readiness, list[str]]:
    async with serving(route) as (url, asked):
        prober = Prober(url, headers={}, timeout_s=timeout_s, report=lambda phase, detail: None)
        return await prober.until_ready(), asked


async def test_the_first_model_answers() -> None:
    found, asked = await probe(good)

    assert found == Readiness(model="m", max_model_len=99, version=None)
    assert asked == ["/health", "/v1/models", "/v1/completions", "/version", "/server_info?config_format=json"]


async def test_c87_errors_while_loading_are_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loadgen.engines.readiness.POLL_S", 0.01)

    def slow(path: str, count: int) -> Answer:
        return (503, ERROR) if count < 3 else good(path, count)

    _, asked = await probe(slow)

    assert asked.count("/health") == asked.count("/v1/models") == asked.count("/v1/completions") == 4
    assert "/v1/chat/completions" not in asked


async def test_chat_is_tried_where_plain_completions_are_missing_or_empty() -> None:
    for plain in ((404, ERROR), NO_TEXT):

        def chat(path: str, count: int, plain: Answer = plain) -> Answer:
            if path == "/v1/chat/completions":
                return 200, {"choices": [{"message": {"content": None, "reasoning": "hm"}}]}
            return plain if path == "/v1/completions" else good(path, count)

        found, _ = await probe(chat)
        assert found.model == "m"


async def test_a_gateway_without_health_is_judged_by_its_completion() -> None:
    found, _ = await probe(lambda path, count: (404, "") if path == "/health" else good(path, count))

    assert found.model == "m"


@pytest.mark.parametrize(
    ("path", "answer", "words"),
    [
        ("/health", (503, ERROR), "phase health: /health says 503"),
        ("/v1/models", (500, ERROR), "phase models: /v1/models says 500"),
        ("/v1/models", (200, {"data": []}), "phase models: /v1/models says 200"),
        ("/v1/models", (200, "no object"), "phase models"),
        ("/v1/completions", (503, ERROR), "phase completion: /v1/completions says 503 no luck"),
        ("/v1/completions", (200, {"choices": []}), "phase completion"),
    ],
)
async def test_the_limit_names_the_phase_and_the_last_answer(path: str, answer: Answer, words: str) -> None:
    for limit_s in (0.5, 5.0, 30.0):  # a stalled machine may not get this far in half a second
        with pytest.raises(ServerError) as caught:
            await probe(lambda asked, count: answer if asked == path else good(asked, count), timeout_s=limit_s)
        said = str(caught.value)
        if words in said:
            break

    assert f"not ready after {limit_s:g} s ({words}" in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/v1/completions", 400, r"refuses a plain completion \(400: no luck\)"),
        ("/v1/completions", 422, "refuses a plain completion"),
        ("/v1/completions", 401, "wants an API key"),
        ("/v1/models", 401, "wants an API key"),
        ("/v1/models", 403, "wants an API key"),
    ],
)
async def test_an_answer_that_waiting_does_not_change_ends_at_once(path: str, status: int, words: str) -> None:
    with pytest.raises(ServerError, match=words):
        await probe(lambda asked, count: (status, ERROR) if asked == path else good(asked, count), timeout_s=600.0)


async def test_a_port_that_nobody_listens_on() -> None:
    async with serving(good) as (url, _):
        pass
    with pytest.raises(ServerError, match=r"phase port: nobody listens yet"):
        await Prober(url, headers={}, timeout_s=0.3, report=lambda phase, detail: None).until_ready()
