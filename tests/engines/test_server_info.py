"""`/server_info` as no vLLM answers it: unknown, never an error, never a false `no speculation`."""

import asyncio
import contextlib
import json
from typing import Any

import httpx2
import pytest

from loadgen.engines.server_info import ask_server_info, effective_from_info

HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"


async def asked(*parts: bytes, then_silent: bool = False, timeout_s: float = 60.0) -> dict[str, Any]:
    """What is made of an answer of these parts; `then_silent` drips bytes behind them without an end."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.writelines(parts)
            while then_silent:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.02)
            await writer.drain()
        except ConnectionError:
            pass  # the client has heard enough
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    handlers: list[asyncio.Task[None]] = []

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.append(asyncio.create_task(handle(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with httpx2.AsyncClient(base_url=url, trust_env=False, follow_redirects=True) as client:
            found = await ask_server_info(client, timeout_s)
        await asyncio.gather(*handlers)
    return found


@pytest.mark.parametrize(
    "parts",
    [
        (HEAD, b"Content-Encoding: gzip\r\n\r\n", b"no gzip"),
        (HEAD, b"\r\n", b"[" * 200_000),
        (HEAD, b"\r\n", b'{"vllm_config": '),
        (HEAD, b"\r\n", b"[1, 2]"),
        (b"HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: 0\r\nLocation: /server_info\r\n\r\n",),
        (b"nonsense\r\n\r\n",),
    ],
)
async def test_an_answer_that_cannot_be_read_is_unknown(parts: tuple[bytes, ...]) -> None:
    assert await asked(*parts) == {}


async def test_a_body_that_drips_without_end_is_unknown() -> None:
    assert await asked(HEAD, b"\r\n", json.dumps({}).encode(), then_silent=True, timeout_s=0.2) == {}


@pytest.mark.parametrize("value", [{"a": 1}, [[1], 2], [{}], {}])
@pytest.mark.parametrize("key", ["cudagraph_mode", "mode", "max_cudagraph_capture_size"])
def test_a_field_of_another_form_is_unknown(key: str, value: object) -> None:
    assert effective_from_info({"vllm_config": {"compilation_config": {key: value}}}) == {}


@pytest.mark.parametrize("value", ["SpeculativeConfig(method='ngram')", "None", [], 0, True])
def test_speculation_of_another_form_is_unknown_and_not_none(value: object) -> None:
    assert "speculation" not in effective_from_info({"vllm_config": {"speculative_config": value}})


def test_no_speculation_is_none() -> None:
    assert effective_from_info({"vllm_config": {"speculative_config": None}}) == {"speculation": None}


def test_a_field_of_speculation_that_is_not_there_is_unknown_and_not_dropped() -> None:
    body = {"vllm_config": {"speculative_config": {"method": "ngram"}}}
    assert effective_from_info(body) == {"speculation": {"method": "ngram"}}
