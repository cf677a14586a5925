"""HTTP itself: keep-alive, pipelining, limits, broken requests, clients that leave or read slowly."""

import asyncio
import json
import socket
from typing import Any

import pytest

from loadgen.simulator import http as sim_http
from loadgen.simulator.http import Connection, Exchange, HttpRequest


@pytest.fixture
def echo_server() -> Any:
    """Runs a server that answers every request with its method, path and body."""
    from contextlib import asynccontextmanager

    def handler(request: HttpRequest, exchange: Exchange) -> None:
        exchange.respond(200, f"{request.method} {request.path} ".encode() + request.body, "text/plain")

    @asynccontextmanager
    async def run(max_body: int = 1000) -> Any:
        connections: set[Connection] = set()
        server = await asyncio.get_running_loop().create_server(
            lambda: Connection(handler, connections, max_body), "127.0.0.1", 0
        )
        try:
            yield server.sockets[0].getsockname()[1], connections
        finally:
            server.close()
            for connection in tuple(connections):
                connection.hang_up()

    return run


async def test_pipelined_requests_are_answered_in_order(run_server: Any, http_request: Any, http_reply: Any) -> None:
    async with run_server() as sim:
        reader, writer = await sim.connect()
        slow = http_request("POST", "/v1/completions", {"prompt": "x", "max_tokens": 5, "stream": True})
        writer.write(slow + http_request("GET", "/version") + http_request("GET", "/health"))
        replies = [await http_reply(reader) for _ in range(3)]
        writer.close()
    assert replies[0].body.endswith(b"data: [DONE]\n\n")
    assert replies[1].json == {"version": "0.32.0"}
    assert replies[2].status == 200


async def test_many_pipelined_requests_pause_reading_and_go_on(
    echo_server: Any, http_request: Any, http_reply: Any
) -> None:
    async with echo_server() as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for at in range(200):
            writer.write(http_request("POST", f"/{at}", b"body"))
        bodies = [(await http_reply(reader)).body for at in range(200)]
        writer.close()
    assert bodies == [f"POST /{at} body".encode() for at in range(200)]


async def test_a_request_one_byte_at_a_time(echo_server: Any, http_request: Any, http_reply: Any) -> None:
    async with echo_server() as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for byte in http_request("POST", "/slow", b"abc"):
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)
        assert (await http_reply(reader)).body == b"POST /slow abc"
        writer.close()


async def test_chunked_request_body_and_expect_continue(echo_server: Any, http_reply: Any) -> None:
    async with echo_server() as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /c HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ntransfer-encoding: chunked\r\n\r\n")
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        assert (await http_reply(reader)).body == b"POST /c abcde"
        writer.close()


async def test_too_large_a_body_gets_413(echo_server: Any, http_request: Any, http_reply: Any) -> None:
    async with echo_server() as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(http_request("POST", "/", b"x" * 2000))
        reply = await http_reply(reader)
        assert reply.status == 413
        assert reply.headers["connection"] == "close"
        writer.close()


@pytest.mark.parametrize("garbage", [b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"hello world\r\n\r\n"])
async def test_garbage_gets_400_and_the_connection_ends(echo_server: Any, http_reply: Any, garbage: bytes) -> None:
    async with echo_server() as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(garbage)
        reply = await http_reply(reader)
        assert reply.status == 400
        assert await reader.read() == b""
        writer.close()


async def test_garbage_after_a_good_request_waits_for_its_answer(
    echo_server: Any, http_request: Any, http_reply: Any
) -> None:
    async with echo_server() as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(http_request("GET", "/good") + b"\x00\r\n\r\n")
        assert (await http_reply(reader)).body == b"GET /good "
        assert (await http_reply(reader)).status == 400
        writer.close()


async def test_connection_close_is_honoured(run_server: Any) -> None:
    async with run_server() as sim:
        reply = await sim.ask("GET", "/version", headers={"connection": "close"})
    assert reply.headers["connection"] == "close"


async def test_http_1_0_streams_without_chunks(run_server: Any, http_request: Any) -> None:
    async with run_server() as sim:
        reader, writer = await sim.connect()
        asked = http_request("POST", "/v1/completions", {"prompt": "x", "max_tokens": 3, "stream": True})
        writer.write(asked.replace(b"HTTP/1.1", b"HTTP/1.0"))
        head, _, body = (await asyncio.wait_for(reader.read(), 60)).partition(b"\r\n\r\n")
        writer.close()
    assert b"transfer-encoding" not in head
    assert body.startswith(b"data: {")
    assert body.endswith(b"data: [DONE]\n\n")


async def test_c39_idle_connections_are_closed(
    echo_server: Any, http_request: Any, http_reply: Any, monkeypatch: Any
) -> None:
    assert sim_http.KEEP_ALIVE_S == 5.0
    monkeypatch.setattr(sim_http, "KEEP_ALIVE_S", 0.02)
    async with echo_server() as (port, connections):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(http_request("GET", "/"))
        await http_reply(reader)
        assert await asyncio.wait_for(reader.read(), 60) == b""
        assert not connections
        writer.close()


async def test_c60_a_client_that_leaves_aborts_its_request(run_server: Any, http_request: Any) -> None:
    async with run_server() as sim:
        for _ in range(8):
            _, writer = await sim.connect()
            writer.write(
                http_request(
                    "POST", "/v1/completions", {"prompt": "x", "max_tokens": 2000, "ignore_eos": True, "stream": True}
                )
            )
            await writer.drain()
            await sim.until(lambda: sim.server.in_flight == 1)
            writer.close()
            await sim.until(lambda: sim.server.in_flight == 0)
        assert len(sim.core.aborted) == 8
        metrics = (await sim.ask("GET", "/metrics")).body.decode()
    assert 'finished_reason="abort",model_name="smollm2"} 0.0' in metrics


async def test_c57_a_slow_reader_gets_merged_events_and_loses_nothing(
    run_server: Any, scripted_core: Any, http_request: Any
) -> None:
    loop = asyncio.get_running_loop()
    async with run_server(scripted_core(step_s=0.0001)) as sim:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        await loop.sock_connect(client, ("127.0.0.1", sim.port))
        await sim.until(lambda: len(sim.server._connections) == 1)
        (connection,) = sim.server._connections
        connection._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        usage = {"include_usage": True, "continuous_usage_stats": True}
        asked = {"prompt": "x", "max_tokens": 2000, "ignore_eos": True, "stream": True, "stream_options": usage}
        await loop.sock_sendall(client, http_request("POST", "/v1/completions", {**asked, "return_token_ids": True}))
        await sim.until(lambda: sim.server.in_flight == 1)
        await sim.until(lambda: sim.server.in_flight == 0)
        body = b""
        while not body.endswith(b"0\r\n\r\n"):
            body += await asyncio.wait_for(loop.sock_recv(client, 65536), 60)
        client.close()
    lines = [line[6:] for line in body.split(b"\n") if line.startswith(b"data: {")]
    sizes = [len(choice["token_ids"]) for line in lines for choice in json.loads(line)["choices"]]
    assert sum(sizes) == 2000
    assert max(sizes) > 100
    assert body.count(b"data: [DONE]") == 1


async def test_head_gets_no_body(run_server: Any, http_request: Any, http_reply: Any) -> None:
    async with run_server() as sim:
        reader, writer = await sim.connect()
        writer.write(http_request("HEAD", "/version"))
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(http_request("GET", "/version"))
        assert (await http_reply(reader)).status == 200
        writer.close()
    assert head.startswith(b"HTTP/1.1 405 Method Not Allowed")


async def test_a_fault_inside_is_a_500_and_the_connection_lives(
    run_server: Any, http_request: Any, http_reply: Any, monkeypatch: Any
) -> None:
    async with run_server() as sim:
        monkeypatch.setattr(sim.core, "reset_prefix_cache", lambda: 1 // 0)
        reader, writer = await sim.connect()
        writer.write(http_request("POST", "/reset_prefix_cache") + http_request("GET", "/health"))
        assert (await http_reply(reader)).json["error"]["type"] == "InternalServerError"
        assert (await http_reply(reader)).status == 200
        writer.close()
