"""The closed loop against a real socket."""

import asyncio
from typing import Any

import pytest

from loadgen.errors import UsageError
from loadgen.load.closed_loop import run_closed_loop
from loadgen.load.record import Outcome, RequestRecord
from loadgen.load.shape import ClosedLoop, LoadProgress, WindowHooks
from loadgen.load.target import Timeouts
from loadgen.load.warmup import run_warmup


async def test_every_request_gives_one_record_and_counts_are_exact(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any
) -> None:
    async def script(seen: Any, reply: Any) -> None:
        await reply.chunked(chunks.reply(5 + seen.number % 3), gap_s=0.004)

    server = await start_server(script)
    got: list[RequestRecord] = []
    steps: list[str] = []
    progress: list[LoadProgress] = []

    async def opened() -> None:
        steps.append("open")

    async def closed() -> None:
        steps.append("close")

    hooks = WindowHooks(opened, closed, progress.append, got.append)
    shape = ClosedLoop(concurrency=4, window_s=0.6, spread_s=0.02)
    result = await run_closed_loop(target_of(server), make_prompts(400), shape, hooks)
    assert steps == ["open", "close"]
    assert len(got) == len(result.records) == len(server.seen)
    assert {r.outcome for r in result.records} == {Outcome.OK}
    by_id = {seen.json()["messages"][0]["content"]: 5 + seen.number % 3 for seen in server.seen}
    for record in result.records:
        assert record.output_tokens == by_id[f"question {record.prompt_id[1:]}"] == len(record.chunk_times_s)
        assert record.start_s < (record.first_token_s or 0) <= (record.last_token_s or 0) <= record.end_s
        assert record.token_source == "server"
        assert record.prompt_tokens == 3
    assert server.most_active == 4
    assert server.connections == 4
    assert result.outcomes["ok"] == len(result.records)
    total = sum(r.output_tokens for r in result.records)
    assert 0 < result.output_tokens_in_window < total
    assert result.window_s >= 0.6
    assert 2.0 < result.health.in_flight_mean <= 4.0
    assert {p.phase for p in progress} <= {"ramp", "window", "drain"}
    assert progress
    assert progress[-1].finished <= len(result.records)


async def test_request_body_has_explicit_sampling_and_identity_encoding(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(seen: Any, reply: Any) -> None:
        await reply.chunked(chunks.reply(2))

    monkeypatch.setenv("MY_KEY", "secret")
    server = await start_server(script)
    target = target_of(server, api_key_variable="MY_KEY")
    await run_closed_loop(target, make_prompts(1), ClosedLoop(concurrency=1, window_s=0.05))
    seen = server.seen[0]
    assert seen.path == "/v1/chat/completions"
    assert seen.headers["accept-encoding"] == "identity"
    assert seen.headers["authorization"] == "Bearer secret"
    body = seen.json()
    assert body["stream_options"] == {"include_usage": True}
    assert {k: body[k] for k in ("temperature", "top_p", "seed", "max_tokens", "ignore_eos", "stream")} == {
        "temperature": 0.0,
        "top_p": 1.0,
        "seed": 0,
        "max_tokens": 16,
        "ignore_eos": False,
        "stream": True,
    }


async def test_c47_fewer_prompts_than_workers_is_refused(make_prompts: Any, start_server: Any, target_of: Any) -> None:
    async def script(seen: Any, reply: Any) -> None:
        raise AssertionError("nothing may be sent")

    server = await start_server(script)
    with pytest.raises(UsageError, match="10 prompts cannot keep 32"):
        await run_closed_loop(target_of(server), make_prompts(10), ClosedLoop(concurrency=32))
    assert server.connections == 0


async def test_c45_workers_go_on_after_failures_and_achieved_concurrency_is_measured(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any
) -> None:
    async def script(seen: Any, reply: Any) -> None:
        if seen.number % 4 == 3:
            await asyncio.sleep(10)
        await reply.chunked(chunks.reply(3), gap_s=0.005)

    server = await start_server(script)
    target = target_of(server, timeouts=Timeouts(first_byte_s=0.1))
    result = await run_closed_loop(target, make_prompts(60), ClosedLoop(concurrency=8, window_s=0.5))
    assert result.outcomes["timeout"] > 0
    assert result.outcomes["ok"] > result.outcomes["timeout"]
    assert 5.0 < result.health.in_flight_mean <= 8.0
    assert len(server.seen) == len(result.records)


async def test_c60_cancel_closes_the_streams_and_keeps_partial_records(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any, until: Any
) -> None:
    async def script(seen: Any, reply: Any) -> None:
        await reply.chunked([chunks.role(), *(chunks.text(f"w{i} ") for i in range(1000))], gap_s=0.01)

    server = await start_server(script)
    cancel = asyncio.Event()
    got: list[RequestRecord] = []
    asyncio.get_running_loop().call_later(0.3, cancel.set)
    shape = ClosedLoop(concurrency=8, window_s=30.0)
    result = await run_closed_loop(
        target_of(server), make_prompts(16), shape, WindowHooks(on_record=got.append), cancel=cancel
    )
    assert result.interrupted
    assert [r.outcome for r in result.records] == [Outcome.CANCELLED] * 8
    assert len(got) == 8
    assert all(r.output_tokens > 0 and r.token_source == "chunks" for r in got)
    assert result.outcomes["cancelled"] == 8
    assert result.output_tokens_in_window == 0
    await until(lambda: server.disconnects == 8 and not server.open_now)


async def test_task_cancellation_still_hands_over_every_record(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any
) -> None:
    async def script(seen: Any, reply: Any) -> None:
        await reply.chunked([chunks.text(f"w{i} ") for i in range(1000)], gap_s=0.01)

    server = await start_server(script)
    got: list[RequestRecord] = []
    run = asyncio.create_task(
        run_closed_loop(
            target_of(server), make_prompts(4), ClosedLoop(concurrency=4), WindowHooks(on_record=got.append)
        )
    )
    await asyncio.sleep(0.2)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert [r.outcome for r in got] == [Outcome.CANCELLED] * 4


async def test_c51_warmup_obeys_the_cap(start_server: Any, chunks: Any, make_prompts: Any, target_of: Any) -> None:
    async def script(seen: Any, reply: Any) -> None:
        await reply.chunked(chunks.reply(2), gap_s=0.01)

    server = await start_server(script)
    warmup = await run_warmup(target_of(server), make_prompts(9), 3)
    assert server.most_active == 3
    assert len(warmup.records) == 9
    assert warmup.errors == ()
    assert warmup.mean_request_s > 0
