"""The closed loop against a real socket."""

import asyncio
from typing import Any

import pytest

from loadgen.clock import now_s
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
    assert 0.5 < result.health.in_flight_mean <= 4.0
    assert {p.phase for p in progress} <= {"ramp", "window", "drain"}
    assert progress
    assert progress[-1].finished <= len(result.records)


async def test_c56_request_body_has_explicit_sampling_and_identity_encoding(
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
    target = target_of(server, timeouts=Timeouts(first_byte_s=0.4))
    result = await run_closed_loop(target, make_prompts(60), ClosedLoop(concurrency=8, window_s=0.8))
    assert result.outcomes["timeout"] > 0
    assert result.outcomes["ok"] > result.outcomes["timeout"]
    assert 1.0 < result.health.in_flight_mean <= 8.0
    assert len(server.seen) == len(result.records)


async def test_c60_cancel_closes_the_streams_and_keeps_partial_records(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any, until: Any
) -> None:
    cancel = asyncio.Event()

    async def script(seen: Any, reply: Any) -> None:
        if seen.number == 7:
            asyncio.get_running_loop().call_later(0.3, cancel.set)
        await reply.chunked([chunks.role(), *(chunks.text(f"w{i} ") for i in range(1000))], gap_s=0.01)

    server = await start_server(script)
    got: list[RequestRecord] = []
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
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any, until: Any
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
    await until(lambda: len(server.seen) == 4)
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


async def test_c43_a_prompt_beyond_the_context_is_an_invalid_request_with_the_servers_words(
    start_server: Any, make_prompts: Any, target_of: Any
) -> None:
    body = b'{"error":{"message":"This model\'s maximum context length is 2048 tokens.","code":400}}'

    async def script(seen: Any, reply: Any) -> None:
        await reply.whole(400, body)

    server = await start_server(script)
    warmup = await run_warmup(target_of(server), make_prompts(2), 1)
    assert [r.outcome for r in warmup.records] == [Outcome.INVALID_REQUEST] * 2
    assert warmup.errors == ("invalid_request: This model's maximum context length is 2048 tokens. (code 400)",)
    assert len(server.seen) == 2
    assert warmup.mean_request_s == 0.0


async def test_c44_overload_has_its_own_category(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any
) -> None:
    busy = b'{"error":{"message":"busy","type":"Service Unavailable","param":null,"code":503}}'

    async def script(seen: Any, reply: Any) -> None:
        if seen.number % 2:
            await reply.whole(503, busy)
        else:
            await reply.chunked(chunks.reply(1))

    server = await start_server(script)
    result = await run_closed_loop(target_of(server), make_prompts(8), ClosedLoop(1, window_s=10.0))
    assert result.outcomes["overload"] == 4
    assert result.outcomes["ok"] == 4
    assert len(server.seen) == 8


async def test_c48_the_window_opens_when_all_run_and_leaves_the_drain_out(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any
) -> None:
    async def script(seen: Any, reply: Any) -> None:
        await reply.chunked(chunks.reply(10), gap_s=0.01)

    server = await start_server(script)
    shape = ClosedLoop(4, window_s=0.3, spread_s=0.4, settle_s=0.3)
    result = await run_closed_loop(target_of(server), make_prompts(200), shape)
    first_of = {w: min(r.start_s for r in result.records if r.worker == w) for w in range(4)}
    assert result.window_open_s > max(first_of.values())
    assert max(first_of.values()) - min(first_of.values()) >= 0.1
    assert max(r.end_s for r in result.records) > result.window_close_s
    assert result.output_tokens_in_window < sum(r.output_tokens for r in result.records)


async def test_c50_warm_up_is_apart_from_what_is_measured(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any
) -> None:
    async def script(seen: Any, reply: Any) -> None:
        if seen.number < 4:
            await asyncio.sleep(0.3)
        await reply.chunked(chunks.reply(2))

    server = await start_server(script)
    prompts = make_prompts(44)
    warmup = await run_warmup(target_of(server), prompts[:4], 4)
    result = await run_closed_loop(
        target_of(server), prompts[4:], ClosedLoop(4, window_s=5.0), request_estimate_s=warmup.mean_request_s
    )
    assert warmup.mean_request_s >= 0.3
    assert {r.prompt_id for r in warmup.records}.isdisjoint(r.prompt_id for r in result.records)
    assert max(r.ttft_s or 0.0 for r in result.records) < min(r.ttft_s or 0.0 for r in warmup.records)


async def test_stamps_follow_the_servers_sends(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any
) -> None:
    sends: list[float] = []

    async def script(seen: Any, reply: Any) -> None:
        await reply.raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for block in chunks.reply(8):
            await asyncio.sleep(0.01)
            sends.append(now_s())
            await reply.raw(b"%x\r\n%s\r\n" % (len(block), block))
        await reply.raw(b"0\r\n\r\n")

    server = await start_server(script)
    (record,) = (await run_warmup(target_of(server), make_prompts(1), 1)).records
    assert len(record.chunk_times_s) == 8
    # role first, then 8 tokens: each stamp lies behind its send and before the next one
    for stamp, sent, following in zip(record.chunk_times_s, sends[1:], sends[2:], strict=False):
        assert sent <= stamp <= following


async def test_hooks_that_fail_end_the_run_without_losing_records(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any
) -> None:
    async def script(seen: Any, reply: Any) -> None:
        await reply.chunked(chunks.reply(100), gap_s=0.01)

    async def broken() -> None:
        raise RuntimeError("scrape failed")

    server = await start_server(script)
    got: list[RequestRecord] = []
    hooks = WindowHooks(on_open=broken, on_record=got.append)
    with pytest.raises(RuntimeError, match="scrape failed"):
        await run_closed_loop(target_of(server), make_prompts(4), ClosedLoop(2), hooks)
    assert [r.outcome for r in got] == [Outcome.CANCELLED] * 2
