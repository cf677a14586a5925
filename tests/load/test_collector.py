"""Deferred decoding: the same sums whenever it happens, and nothing lost."""

import asyncio
from typing import Any

import pytest

from loadgen.load.arrivals import Arrivals, End
from loadgen.load.collector import DROPPED, Collector
from loadgen.load.crew import Crew
from loadgen.load.decode import Asked
from loadgen.load.record import RequestRecord
from loadgen.load.request import prepare
from loadgen.load.shape import WindowHooks


def exchange(chunks: Any, start_s: float, words: int = 10) -> Arrivals:
    arrivals = Arrivals(sent_s=start_s, status=200, attempts=1)
    for i, block in enumerate(chunks.reply(words)):
        arrivals.add(start_s + 0.1 * i, block)
    arrivals.end(End.COMPLETE, start_s + 0.1 * (words + 3))
    return arrivals


async def test_early_decoding_gives_the_same_sums(chunks: Any) -> None:
    late, early = Collector(None), Collector(None, byte_budget=2500)
    for collector in (late, early):
        for i in range(30):
            arrivals = exchange(chunks, float(i))
            # as in a run: an edge is known before anything that ended behind it is added
            if arrivals.ended_s >= 5.0:
                collector.sums.open_s = 5.0
            if arrivals.ended_s >= 28.05:
                collector.sums.close_s = 28.05
            collector.add(Asked(f"p{i}"), arrivals)
            await asyncio.sleep(0)
    assert early.records
    assert not late.records
    await early.finish()
    await late.finish()
    assert [r.prompt_id for r in early.records] == [r.prompt_id for r in late.records]
    assert early.sums.tokens_in_window == late.sums.tokens_in_window
    assert 220 < late.sums.tokens_in_window < 240
    assert early.sums.outcomes["ok"] == 30
    assert early.sums.seconds_in_window == pytest.approx(late.sums.seconds_in_window)


async def test_memory_is_bounded_but_the_listener_gets_all(chunks: Any) -> None:
    got: list[RequestRecord] = []
    collector = Collector(got.append, event_budget=25)
    for i in range(4):
        collector.add(Asked(f"p{i}"), exchange(chunks, float(i)))
    await collector.finish()
    assert [len(r.chunk_times_s) for r in got] == [10, 10, 10, 10]
    assert [len(r.chunk_times_s) for r in collector.records] == [10, 10, 0, 0]
    assert [r.output_tokens for r in collector.records] == [10] * 4
    assert collector.records[3].tpot_s == got[3].tpot_s
    assert [DROPPED in r.warnings for r in collector.records] == [False, False, True, True]
    assert not any(r.warnings for r in got)


async def test_a_listener_that_fails_ends_the_run_with_its_error(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any
) -> None:
    async def script(seen: Any, reply: Any) -> None:
        await reply.chunked(chunks.reply(2))

    def full(record: RequestRecord) -> None:
        raise OSError("disk full")

    server = await start_server(script)
    target = target_of(server)
    (prompt,) = make_prompts(1)

    async def run() -> None:
        async with Crew(target, WindowHooks(on_record=full), None) as crew:
            await crew.request(prepare(prompt, target), 0)

    with pytest.raises(OSError, match="disk full"):
        await run()


async def test_a_fault_in_a_worker_is_raised_and_not_waited_for(target_of: Any, start_server: Any) -> None:
    async def script(seen: Any, reply: Any) -> None:
        raise AssertionError("nothing is sent")

    server = await start_server(script)

    async def broken() -> None:
        raise ZeroDivisionError

    async def run() -> None:
        async with Crew(target_of(server), WindowHooks(), None) as crew, asyncio.timeout(60):
            crew.spawn(broken())
            await crew.wait(lambda: False, "window")

    with pytest.raises(ZeroDivisionError):
        await run()
