import asyncio
import json
import shutil
import time
from pathlib import Path

import httpx2
import pytest

from benchmarks.loops.common import body, tag
from benchmarks.mock import Truth, build, serving

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="the mock server needs a C compiler")


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("bench"))


def data_lines(text: str) -> list[str]:
    return [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: ")]


async def post(url: str, requests: list[dict[str, object]], path: str = "/v1/chat/completions") -> list[str]:
    async with httpx2.AsyncClient(trust_env=False, timeout=30.0) as client:
        replies = await asyncio.gather(*(client.post(url + path, json=request) for request in requests))
    assert all(reply.status_code == 200 for reply in replies)
    return [reply.text for reply in replies]


async def test_log_tells_each_send_and_the_stream_is_vllms(binary: Path, tmp_path: Path) -> None:
    before_s = time.monotonic()
    with serving(binary, tmp_path / "log", 2.0, None, "--first-ms", "5", "--all-times") as server:
        texts = await post(server.url, [body(n, 7) for n in range(4)])
    after_s = time.monotonic()
    truths = server.truths()
    assert sorted(one.tag for one in truths) == [tag(n) for n in range(4)]
    for one in truths:
        assert (one.events, one.tokens, one.aborted, len(one.times_s)) == (7, 7, False, 7)
        assert (one.times_s[0], one.times_s[-1]) == (one.first_s, one.last_s)
        # a deadline may be missed but never anticipated
        assert all(t >= one.received_s + 0.005 + k * 0.002 for k, t in enumerate(one.times_s))
        assert before_s < one.received_s < one.last_s < after_s
    for text in texts:
        lines = data_lines(text)
        assert lines[-1] == "[DONE]"
        chunks = [json.loads(line) for line in lines[:-1]]
        assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
        assert [c["choices"][0]["delta"]["content"] for c in chunks[1:-1]] == [" word"] * 7
        assert [c["choices"][0]["finish_reason"] for c in chunks[1:-1]] == [None] * 6 + ["length"]
        assert chunks[-1]["usage"] == {"prompt_tokens": 32, "total_tokens": 39, "completion_tokens": 7}


async def test_spread_parts_requests_that_came_together(binary: Path, tmp_path: Path) -> None:
    with serving(binary, tmp_path / "log", 40.0, None, "--spread") as server:
        await post(server.url, [body(n, 2) for n in range(8)])
    for number, one in enumerate(server.truths()):
        phase = number * 0.6180339887498949 % 1
        assert one.first_s >= one.received_s + 0.040 * (0.5 + phase)


async def test_tokens_per_event_and_completions(binary: Path, tmp_path: Path) -> None:
    request = {"model": "mock", "prompt": "bench-000003", "max_tokens": 8, "stream": True}
    with serving(binary, tmp_path / "log", 1.0, None, "--tokens-per-event", "3") as server:
        (text,) = await post(server.url, [request], "/v1/completions")
    contents = [json.loads(line)["choices"][0]["text"] for line in data_lines(text)[:-1]]
    assert contents == [" word word word", " word word word", " word word"]
    (one,) = server.truths()
    assert (one.tag, one.events, one.tokens) == ("bench-000003", 3, 8)


async def test_saturated_keeps_every_byte_of_a_slow_reader(binary: Path, tmp_path: Path) -> None:
    count = 40_000
    with serving(binary, tmp_path / "log", None) as server:
        port = int(server.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        text = json.dumps(body(0, count)).encode()
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
        await asyncio.sleep(0.3)  # the sockets fill up meanwhile
        got = await _until(reader, b"0\r\n\r\n")
        writer.close()
        await writer.wait_closed()
    assert got.count(b'"content":" word"') == count
    (one,) = server.truths()
    assert (one.events, one.aborted) == (count, False)
    assert one.blocked > 0


async def _until(reader: asyncio.StreamReader, end: bytes) -> bytes:
    got = bytearray()
    while not got.endswith(end):
        block = await reader.read(1 << 16)
        assert block, "the server closed the connection"
        got += block
    return bytes(got)


async def test_broken_off_streams_are_logged_as_such(binary: Path, tmp_path: Path) -> None:
    with serving(binary, tmp_path / "log", 5.0) as server:
        async with (
            httpx2.AsyncClient(trust_env=False) as client,
            client.stream("POST", server.url + "/v1/chat/completions", json=body(1, 1000)) as response,
        ):
            async for _ in response.aiter_raw():
                break
        await asyncio.sleep(0.05)
    (one,) = server.truths()
    assert one.aborted
    assert 0 < one.events < 1000


async def test_other_paths(binary: Path, tmp_path: Path) -> None:
    with serving(binary, tmp_path / "log", 1.0) as server:
        async with httpx2.AsyncClient(trust_env=False, base_url=server.url) as client:
            assert (await client.get("/health")).status_code == 200
            assert (await client.get("/v1/models")).json()["data"][0]["id"] == "mock"
            assert (await client.get("/version")).json() == {"version": "0.32.0"}
            assert "vllm:num_requests_running{" in (await client.get("/metrics")).text
            assert (await client.get("/nothing")).status_code == 404
            whole = await client.post("/v1/chat/completions", json=body(0, 3) | {"stream": False})
            assert whole.json()["usage"]["completion_tokens"] == 3
    assert server.truths() == []


def test_ttft_of_a_truth() -> None:
    assert Truth("t", "", 1.0, 1.25, 2.0, 1, 1, 0, aborted=False).ttft_s == 0.25
