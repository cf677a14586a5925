"""The transport on real sockets."""

import asyncio
import gzip
import zlib
from typing import Any

import httpx2
import pytest

from loadgen.load.arrivals import Arrivals, End
from loadgen.load.client import make_client
from loadgen.load.decode import decode
from loadgen.load.record import Outcome, RequestRecord
from loadgen.load.request import prepare
from loadgen.load.sender import Sender
from loadgen.load.target import Target, Timeouts
from loadgen.load.transport import StampedTransport
from loadgen.workloads.base import Message, Prompt

PROMPT = Prompt("p0", 16, messages=(Message("user", "hello"),))


async def one(client: httpx2.AsyncClient, target: Target, prompt: Prompt = PROMPT) -> tuple[RequestRecord, Arrivals]:
    request = prepare(prompt, target)
    arrivals = Arrivals()
    await Sender(client, target).send(request, arrivals)
    return decode(arrivals, request.asked), arrivals


async def test_connections_are_kept_and_framing_does_not_matter(start_server: Any, chunks: Any, target_of: Any) -> None:
    body = b"".join(chunks.reply(4))
    sse = "text/event-stream"

    async def script(seen: Any, reply: Any) -> bool | None:
        if seen.number == 0:
            await reply.chunked(chunks.reply(4))
        elif seen.number == 1:
            await reply.whole(200, body, sse)
        elif seen.number == 2:
            await reply.raw(b"HTTP/1.1 100 Continue\r\n\r\n")
            await reply.whole(200, body, sse, "connection: close\r\n")
            return False
        else:
            await reply.raw(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + body)
            return False
        return None

    server = await start_server(script)
    target = target_of(server)
    async with make_client(target) as client:
        records = [(await one(client, target))[0] for _ in range(4)]
    assert [r.outcome for r in records] == [Outcome.OK] * 4
    assert [r.output_tokens for r in records] == [4] * 4
    assert [s.connection for s in server.seen] == [1, 1, 1, 2]


@pytest.mark.parametrize("cut", [1, 2, 3, 5, 64, 1000])
async def test_cuts_of_the_wire_bytes_do_not_matter(start_server: Any, chunks: Any, target_of: Any, cut: int) -> None:
    blocks = [chunks.text("日本"), chunks.text("A B"), chunks.fin("stop"), chunks.usage(3, 2), chunks.done]
    wire = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    wire += b"".join(b"%x\r\n%s\r\n" % (len(b), b) for b in blocks) + b"0\r\nx-trailer: 1\r\n\r\n"

    async def script(seen: Any, reply: Any) -> None:
        for i in range(0, len(wire), cut):
            await reply.raw(wire[i : i + cut])
            await asyncio.sleep(0)

    server = await start_server(script)
    target = target_of(server, keep_text=True)
    async with make_client(target) as client:
        record, _ = await one(client, target)
        again, _ = await one(client, target)
    assert (record.outcome, record.text, record.output_tokens) == (Outcome.OK, "日本A B", 2)
    assert again.outcome is Outcome.OK
    assert server.connections == 1


async def test_c39_a_connection_that_the_server_closed_while_idle_fails_no_request(
    start_server: Any, chunks: Any, target_of: Any, until: Any
) -> None:
    async def script(seen: Any, reply: Any) -> bool:
        await reply.chunked(chunks.reply(2))
        return False  # keep-alive was promised, and the server closes all the same

    server = await start_server(script)
    target = target_of(server)
    async with make_client(target) as client:
        first, _ = await one(client, target)
        await until(lambda: server.open_now == 0)
        for _ in range(10):  # passes of the loop, in which the client sees the end
            await asyncio.sleep(0.005)
        second, _ = await one(client, target)
    assert (first.outcome, second.outcome) == (Outcome.OK, Outcome.OK)
    assert second.attempts == 1
    assert server.connections == 2


async def test_c39_a_close_that_races_the_write_is_sent_once_more(
    start_server: Any, chunks: Any, target_of: Any
) -> None:
    async def script(seen: Any, reply: Any) -> bool | None:
        if seen.number == 1:
            return False  # as if the idle close and the request had crossed
        await reply.chunked(chunks.reply(2))
        return None

    server = await start_server(script)
    target = target_of(server)
    async with make_client(target) as client:
        await one(client, target)
        record, arrivals = await one(client, target)
    assert record.outcome is Outcome.OK
    assert record.attempts == arrivals.attempts == 2
    assert len(server.seen) == 3


async def test_c41_nothing_else_is_ever_sent_twice(start_server: Any, chunks: Any, target_of: Any) -> None:
    async def script(seen: Any, reply: Any) -> bool | None:
        if seen.number == 0:
            return False  # a fresh connection that dies is a failure, not the race
        if seen.number % 3:
            await reply.whole(503, b'{"error":{"message":"busy","code":503}}')
            return None
        await reply.chunked(chunks.reply(1))
        return None

    server = await start_server(script)
    target = target_of(server)
    async with make_client(target) as client:
        outcomes = [(await one(client, target))[0].outcome for _ in range(7)]
    assert outcomes[0] is Outcome.TRANSPORT_ERROR
    assert outcomes.count(Outcome.OVERLOAD) == 4
    assert outcomes.count(Outcome.OK) == 2
    assert len(server.seen) == 7


async def test_c37_the_server_sees_all_requests_at_once(start_server: Any, chunks: Any, target_of: Any) -> None:
    gate = asyncio.Event()

    async def script(seen: Any, reply: Any) -> None:
        if reply.server.active == 128:
            gate.set()
        await gate.wait()
        await reply.chunked(chunks.reply(1))

    server = await start_server(script)
    target = target_of(server)
    async with make_client(target) as client, asyncio.timeout(60):
        results = await asyncio.gather(*(one(client, target) for _ in range(128)))
    assert server.most_active == 128
    assert {record.outcome for record, _ in results} == {Outcome.OK}


async def test_c38_cancelled_streams_leave_nothing_behind(
    start_server: Any, chunks: Any, target_of: Any, until: Any
) -> None:
    async def script(seen: Any, reply: Any) -> None:
        if seen.number < 8:
            await reply.chunked([chunks.text("x")] * 1000, gap_s=0.01)
        await reply.chunked(chunks.reply(1))

    server = await start_server(script)
    target = target_of(server)
    async with make_client(target) as client:
        tasks = [asyncio.create_task(one(client, target)) for _ in range(8)]
        await until(lambda: len(server.seen) == 8)
        for task in tasks:
            task.cancel()
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert all(task.cancelled() for task in tasks)
        async with asyncio.timeout(60):
            record, _ = await one(client, target)
        assert record.outcome is Outcome.OK
        await until(lambda: server.disconnects == 8)


async def test_c40_a_long_prefill_is_no_timeout(start_server: Any, chunks: Any, target_of: Any) -> None:
    assert Timeouts().first_byte_s is None
    assert Timeouts().total_s is None

    async def script(seen: Any, reply: Any) -> None:
        await asyncio.sleep(0.7)
        await reply.chunked(chunks.reply(2))

    server = await start_server(script)
    # an idle limit far below the prefill time: it must not start before the first byte
    target = target_of(server, timeouts=Timeouts(idle_s=0.5))
    async with make_client(target) as client:
        record, _ = await one(client, target)
    assert record.outcome is Outcome.OK
    assert record.ttft_s is not None
    assert record.ttft_s >= 0.7


@pytest.mark.parametrize(
    ("timeouts", "end"),
    [
        (Timeouts(first_byte_s=0.05), End.FIRST_BYTE_TIMEOUT),
        (Timeouts(total_s=0.25), End.TOTAL_TIMEOUT),
        (Timeouts(idle_s=0.5), End.IDLE_TIMEOUT),
    ],
)
async def test_each_limit_ends_a_request_as_timeout(
    start_server: Any, chunks: Any, target_of: Any, until: Any, timeouts: Timeouts, end: End
) -> None:
    async def script(seen: Any, reply: Any) -> None:
        await asyncio.sleep(0.1)
        # comments reset the idle limit, then silence
        await reply.chunked([chunks.text("x"), *([b": keep-alive\n\n"] * 4)], gap_s=0.15)
        await asyncio.sleep(10)

    async def silent(seen: Any, reply: Any) -> None:
        await script(seen, Unfinished(reply))

    server = await start_server(silent)
    target = target_of(server, timeouts=timeouts)
    async with make_client(target) as client:
        record, arrivals = await one(client, target)
    assert record.outcome is Outcome.TIMEOUT
    assert arrivals.ended is end
    assert "time" in (record.error or "")
    if end is End.IDLE_TIMEOUT:
        assert arrivals.size > 4 * 14  # all the comments came through
    await until(lambda: server.open_now == 0)


class Unfinished:
    """A reply whose last chunk never comes."""

    def __init__(self, reply: Any) -> None:
        self._reply = reply

    async def chunked(self, blocks: list[bytes], gap_s: float) -> None:
        await self._reply.raw(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        for block in blocks:
            await self._reply.raw(b"%x\r\n%s\r\n" % (len(block), block), gap_s)


async def test_refused_and_unresolvable_connections_are_connect_errors() -> None:
    target = Target("http://127.0.0.1:9", "m")
    async with make_client(target) as client:
        record, _ = await one(client, target)
    assert record.outcome is Outcome.CONNECT_ERROR
    assert "127.0.0.1:9" in (record.error or "")


async def test_c58_proxy_variables_are_ignored_unless_asked(
    start_server: Any, chunks: Any, target_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(seen: Any, reply: Any) -> None:
        await reply.chunked(chunks.reply(2))

    proxy = await start_server(script)
    server = await start_server(script)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    target = target_of(server)
    async with make_client(target) as client:
        record, _ = await one(client, target)
    assert record.outcome is Outcome.OK
    monkeypatch.setenv("http_proxy", proxy.url)
    asked = Target("http://server.invalid", "m", use_proxy_environment=True)
    async with make_client(asked) as client:
        record, _ = await one(client, asked)
    assert record.outcome is Outcome.OK
    assert any("proxy" in warning for warning in record.warnings)
    assert proxy.seen[0].path == "http://server.invalid/v1/chat/completions"


async def test_ipv6(start_server: Any, chunks: Any, target_of: Any) -> None:
    async def script(seen: Any, reply: Any) -> None:
        await reply.chunked(chunks.reply(2))

    server = await start_server(script, host="::1")
    target = target_of(server)
    async with make_client(target) as client:
        record, _ = await one(client, target)
    assert record.outcome is Outcome.OK
    assert server.seen[0].headers["host"].startswith("[::1]")


@pytest.mark.parametrize("coding", ["gzip", "deflate", "raw-deflate"])
async def test_c09_content_coding_is_decoded_and_named(
    start_server: Any, chunks: Any, target_of: Any, coding: str
) -> None:
    body = b": keep-alive\n\n" + b"".join(chunks.reply(12))
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    packed = {
        "gzip": gzip.compress(body),
        "deflate": zlib.compress(body),
        "raw-deflate": packer.compress(body) + packer.flush(),
    }[coding]
    name = coding.removeprefix("raw-")

    async def script(seen: Any, reply: Any) -> None:
        await asyncio.sleep(0.02)
        await reply.whole(200, packed, "text/event-stream", f"content-encoding: {name}\r\n")

    server = await start_server(script)
    target = target_of(server)
    async with make_client(target) as client:
        record, _ = await one(client, target)
    assert (record.outcome, record.output_tokens) == (Outcome.OK, 12)
    assert any(name in warning for warning in record.warnings)
    assert any(warning.startswith("buffered") for warning in record.warnings)
    assert server.seen[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    "wire",
    [
        b"SSH-2.0-OpenSSH_9\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"a" * 70_000,
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n",
    ],
)
async def test_what_is_not_http_is_a_transport_error(start_server: Any, target_of: Any, wire: bytes) -> None:
    async def script(seen: Any, reply: Any) -> None:
        await reply.raw(wire)
        await asyncio.sleep(300)

    server = await start_server(script)
    target = target_of(server)
    async with make_client(target) as client, asyncio.timeout(60):
        record, arrivals = await one(client, target)
    assert record.outcome is Outcome.TRANSPORT_ERROR
    assert arrivals.ended is End.PROTOCOL


async def test_a_plain_httpx2_stream_has_back_pressure_and_stamps(start_server: Any, until: Any) -> None:
    block = b"x" * 65536
    written = 0

    async def script(seen: Any, reply: Any) -> None:
        nonlocal written
        await reply.raw(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (len(block) * 400))
        for _ in range(400):
            await reply.raw(block)
            written += len(block)

    server = await start_server(script)
    async with httpx2.AsyncClient(transport=StampedTransport(), trust_env=False) as client:
        async with client.stream("GET", server.url) as response:
            await asyncio.sleep(0.3)
            early = written
            assert early < len(block) * 300  # the server was held up
            total = 0
            async for part in response.aiter_raw():
                total += len(part)
            arrivals = response.extensions["arrivals"]
        assert total == len(block) * 400 == arrivals.size
        assert len(arrivals.times_s) > 10
        assert arrivals.times_s == sorted(arrivals.times_s)
        assert not arrivals.blocks
        async with client.stream("GET", server.url) as response:
            await anext(response.aiter_raw())
        await until(lambda: server.disconnects == 1)


async def test_an_ordinary_call_with_json_works(start_server: Any) -> None:
    async def script(seen: Any, reply: Any) -> None:
        await reply.whole(200, b'{"ok": true}')

    server = await start_server(script)
    async with httpx2.AsyncClient(transport=StampedTransport(), trust_env=False) as client:
        for _ in range(3):
            assert (await client.post(server.url, json={"a": 1})).json() == {"ok": True}
        assert (await client.head(server.url)).status_code == 200
        with pytest.raises(httpx2.ConnectError):
            await client.get("http://127.0.0.1:9")
        with pytest.raises(httpx2.LocalProtocolError):
            await client.get(server.url, headers={b"x": b"a\r\nb: c"})
    assert server.seen[0].json() == {"a": 1}
    assert {seen.connection for seen in server.seen[:3]} == {1}


@pytest.mark.parametrize("surplus", [b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx", b"garbage"])
async def test_bytes_after_the_response_spoil_the_connection_but_not_the_response(
    start_server: Any, chunks: Any, target_of: Any, surplus: bytes
) -> None:
    async def script(seen: Any, reply: Any) -> None:
        await reply.raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for block in chunks.reply(2)[:-1]:
            await reply.raw(b"%x\r\n%s\r\n" % (len(block), block), 0.002)
        await reply.raw(b"%x\r\n%s\r\n0\r\n\r\n%s" % (len(chunks.done), chunks.done, surplus), 0.002)

    server = await start_server(script)
    target = target_of(server)
    async with make_client(target) as client:
        records = [(await one(client, target))[0] for _ in range(2)]
    assert [(r.outcome, r.output_tokens) for r in records] == [(Outcome.OK, 2)] * 2
    assert server.connections == 2
