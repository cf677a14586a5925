"""Several load processes give what one gives: real processes, a real socket."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from loadgen.errors import UsageError
from loadgen.load.record import Outcome, RequestRecord
from loadgen.load.shape import ClosedLoop, LoadProgress, LoadResult, WindowHooks
from loadgen.load.target import Target
from loadgen.load.workers.closed_loop import run_workers
from loadgen.load.workers.pool import WorkerError, WorkerPool

ONE_STREAM = ClosedLoop(concurrency=1, window_s=60.0, max_window_s=60.0, spread_s=0.0)


async def run(workers: int, target: Target, prompts: Any, shape: ClosedLoop, **options: Any) -> LoadResult:
    async with WorkerPool(workers) as pool:
        return await run_workers(pool, target, prompts, shape, **options)


async def test_two_processes_send_every_prompt_once(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any
) -> None:
    async def script(seen: Any, reply: Any) -> None:
        await reply.chunked(chunks.reply(6), 0.005)

    got: list[RequestRecord] = []
    opened: list[str] = []
    progress: list[LoadProgress] = []

    async def opens() -> None:
        opened.append("open")

    async def closes() -> None:
        opened.append("close")

    server = await start_server(script)
    prompts = make_prompts(40)
    hooks = WindowHooks(opens, closes, progress.append, got.append)
    shape = replace(ONE_STREAM, concurrency=5)
    result = await run(2, target_of(server, keep_text=True), prompts, shape, hooks=hooks)
    assert sorted(s.json()["messages"][0]["content"] for s in server.seen) == sorted(
        p.messages[0].content for p in prompts
    )
    assert {r.prompt_id for r in result.records} == {p.prompt_id for p in prompts}
    assert {r.prompt_id for r in got} == {p.prompt_id for p in prompts}
    assert {r.worker for r in result.records} == {0, 1, 2, 3, 4}
    assert result.outcomes["ok"] == 40
    assert sum(r.output_tokens for r in result.records) == 240
    assert all(len(r.chunk_times_s) == 6 and r.text == "w0 w1 w2 w3 w4 w5 " for r in result.records)
    assert opened == ["open", "close"]
    assert result.health.processes == 2
    assert 0 < result.health.in_flight_mean <= 5
    assert server.most_active == 5


async def test_the_window_is_one_and_leaves_the_drain_out(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any
) -> None:
    async def script(seen: Any, reply: Any) -> None:
        await reply.chunked(chunks.reply(10), 0.01)

    server = await start_server(script)
    shape = ClosedLoop(concurrency=4, window_s=0.4, spread_s=0.1)
    result = await run(2, target_of(server), make_prompts(400), shape)
    assert result.window_s >= 0.4
    assert len(result.records) < 400
    assert result.requests_ended_in_window < len(result.records)
    assert 0 < result.output_tokens_in_window < sum(r.output_tokens for r in result.records)
    assert max(r.end_s for r in result.records) > result.window_close_s
    assert {r.outcome for r in result.records} == {Outcome.OK}


async def test_a_pool_takes_one_load_after_another(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any
) -> None:
    async def script(seen: Any, reply: Any) -> None:
        await reply.chunked(chunks.reply(3))

    server = await start_server(script)
    async with WorkerPool(2) as pool:
        for level in (1, 2, 3):
            shape = replace(ONE_STREAM, concurrency=level)
            result = await run_workers(pool, target_of(server), make_prompts(6), shape)
            assert result.outcomes["ok"] == 6
            # a level below the number of processes needs no more than its own
            assert result.health.processes == min(level, 2)


async def test_cancelling_ends_requests_at_once_and_keeps_them(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any, until: Any
) -> None:
    async def script(seen: Any, reply: Any) -> None:
        await reply.chunked([chunks.text("x")] * 100_000, 0.05)

    server = await start_server(script)
    cancel = asyncio.Event()
    shape = replace(ONE_STREAM, concurrency=4)
    load = asyncio.create_task(run(2, target_of(server), make_prompts(8), shape, cancel=cancel))
    await until(lambda: server.active == 4)
    cancel.set()
    async with asyncio.timeout(60):
        result = await load
    assert result.interrupted
    assert [r.outcome for r in result.records] == [Outcome.CANCELLED] * 4
    await until(lambda: server.disconnects == 4)


async def test_a_process_that_dies_is_said(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any, until: Any
) -> None:
    async def script(seen: Any, reply: Any) -> None:
        await reply.chunked([chunks.text("x")] * 100_000, 0.05)

    server = await start_server(script)
    async with WorkerPool(2) as pool:
        load = asyncio.create_task(
            run_workers(pool, target_of(server), make_prompts(8), replace(ONE_STREAM, concurrency=2))
        )
        await until(lambda: server.active == 2)
        pool.workers[1].kill()
        with pytest.raises(WorkerError, match="ended by itself"):
            await load


async def test_wrong_numbers_are_refused(make_prompts: Any) -> None:
    with pytest.raises(UsageError, match="--workers 0"):
        WorkerPool(0)
    async with WorkerPool(1) as pool:
        with pytest.raises(UsageError, match="3 prompts cannot keep 4"):
            await run_workers(pool, Target("http://127.0.0.1:1", "m"), make_prompts(3), ClosedLoop(4))
