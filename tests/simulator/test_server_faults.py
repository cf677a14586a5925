"""Faults on purpose look to a client like the real ones."""

import gzip
from typing import Any

import pytest

from loadgen.errors import UsageError
from loadgen.simulator.faults import KINDS, Fault

BODY = {"stream": True, "max_tokens": 10, "ignore_eos": True}


async def test_c41_unavailable_at_first(run_server: Any) -> None:
    async with run_server(fault="unavailable:2") as sim:
        statuses = [(await sim.complete(max_tokens=1)).status for _ in range(3)]
    assert statuses == [503, 503, 200]


async def test_healthy_before_it_can_serve(run_server: Any) -> None:
    async with run_server(fault="slow-health:0.2") as sim:
        assert (await sim.ask("GET", "/health")).status == 200
        assert (await sim.complete(max_tokens=1)).status == 503
        sim.server._started_s -= 1
        assert (await sim.complete(max_tokens=1)).status == 200


async def test_c13_error_in_the_stream(run_server: Any) -> None:
    async with run_server(fault="error-mid-stream:4") as sim:
        reply = await sim.complete(**BODY)
        await sim.until(lambda: sim.server.in_flight == 0)
    assert reply.status == 200
    assert reply.complete
    assert len(reply.events) == 5
    assert reply.events[-1]["error"]["code"] == 500
    assert reply.body.endswith(b"data: [DONE]\n\n")


async def test_c15_stream_ends_early_but_cleanly(run_server: Any) -> None:
    async with run_server(fault="early-end:2") as sim:
        reply = await sim.complete(**BODY)
    assert reply.complete
    assert len(reply.events) == 2
    assert b"[DONE]" not in reply.body


@pytest.mark.parametrize("kind", ["truncated", "reset"])
async def test_c16_connection_dropped(run_server: Any, kind: str) -> None:
    async with run_server(fault=f"{kind}:2") as sim:
        reply = await sim.complete(**BODY)
        await sim.until(lambda: sim.server.in_flight == 0)
        assert len(sim.core.aborted) == 1
    assert not reply.complete
    assert len(reply.events) <= 2


async def test_engine_death_after_n_requests(run_server: Any) -> None:
    async with run_server(fault="engine-death:1") as sim:
        assert (await sim.complete(max_tokens=1)).status == 200
        assert (await sim.complete(max_tokens=1)).status == 500
        assert sim.server.died.is_set()


async def test_gzip_nobody_asked_for(run_server: Any) -> None:
    async with run_server(fault="gzip") as sim:
        whole = await sim.complete(max_tokens=3)
        stream = await sim.complete(**BODY)
    assert whole.headers["content-encoding"] == stream.headers["content-encoding"] == "gzip"
    assert gzip.decompress(whole.body).startswith(b'{"id":')
    assert gzip.decompress(stream.body).endswith(b"data: [DONE]\n\n")


async def test_c05_comments_between_events(run_server: Any) -> None:
    async with run_server(fault="keep-alive:2") as sim:
        reply = await sim.complete(**BODY)
    assert len(reply.events) == 10
    assert reply.body.count(b": keep-alive\n\n") == 2 * 11


@pytest.mark.parametrize("text", ["nonsense", "reset:many"])
def test_unknown_faults_are_usage_errors(text: str) -> None:
    with pytest.raises(UsageError):
        Fault.parse(text)


def test_every_fault_parses() -> None:
    assert [Fault.parse(name).kind for name in KINDS] == list(KINDS)
