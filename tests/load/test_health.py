"""The client's own health."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from loadgen.load.closed_loop import run_closed_loop
from loadgen.load.health import CpuTimes, LagSampler, lockstep, read_cpu_times, steal_share
from loadgen.load.record import Outcome, RequestRecord
from loadgen.load.runner import run_fast
from loadgen.load.shape import ClosedLoop, LoadResult
from loadgen.load.target import Target
from loadgen.load.window import in_flight_mean, seconds_in_window


async def test_c57_a_blocked_loop_shows_as_lag() -> None:
    sampler = LagSampler()
    sampler.start()
    open_s = time.monotonic()
    await asyncio.sleep(0.12)
    time.sleep(0.2)  # noqa: ASYNC251 - blocking the loop is what is measured
    await asyncio.sleep(0.06)
    lag = sampler.p99_s(open_s, time.monotonic())
    sampler.stop()
    assert lag >= 0.1
    assert sampler.p99_s(open_s - 2, open_s - 1) == 0.0


async def test_a_loop_that_is_still_blocked_counts() -> None:
    sampler = LagSampler()
    sampler.start()
    open_s = time.monotonic()
    time.sleep(0.2)  # noqa: ASYNC251 - blocking the loop is what is measured
    assert sampler.p99_s(open_s, time.monotonic()) >= 0.1
    sampler.stop()


async def test_c57_health_of_a_paced_run_is_measured(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any
) -> None:
    async def script(seen: Any, reply: Any) -> None:
        await reply.chunked(chunks.reply(20), gap_s=0.005)

    server = await start_server(script)
    result = await run_closed_loop(target_of(server), make_prompts(200), ClosedLoop(16, window_s=0.5))
    health = result.health
    assert 1.0 < health.in_flight_mean <= 16.0
    assert 0.0 < health.cpu_share < 2.0
    assert health.loop_lag_p99_s >= 0.0
    assert 0.0 <= health.zero_gap_share < 1.0
    assert 0.0 <= health.lockstep <= 1.0


async def test_c08_coalesced_chunks_show_as_zero_gaps(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any
) -> None:
    async def script(seen: Any, reply: Any) -> None:
        await asyncio.sleep(0.005)
        await reply.chunked([b"".join(chunks.reply(20))])

    server = await start_server(script)
    result = await run_closed_loop(target_of(server), make_prompts(40), ClosedLoop(2, window_s=0.2))
    assert result.health.zero_gap_share == pytest.approx(0.95)


def test_lockstep() -> None:
    assert lockstep([10.0 * k for k in range(20)], 10.0) == pytest.approx(1.0)
    assert lockstep([k / 20 for k in range(200)], 1.0) == pytest.approx(0.0, abs=0.05)
    assert lockstep([1.0, 2.0], 1.0) == 0.0
    assert lockstep([1.0] * 5, 0.0) == 0.0


def test_c45_in_flight_is_what_was_reached() -> None:
    def record(start_s: float, end_s: float) -> RequestRecord:
        return RequestRecord("p", 0, Outcome.TIMEOUT, start_s, end_s)

    assert seconds_in_window(record(0.0, 5.0), 2.0, 4.0) == 2.0
    assert seconds_in_window(record(0.0, 1.0), 2.0, 4.0) == 0.0
    assert in_flight_mean([record(0.0, 3.0), record(3.0, 9.0)], 2.0, 4.0) == 1.0
    assert in_flight_mean([], 2.0, 2.0) == 0.0


def test_steal_share(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  10 0 10 70 0 0 0 10 5 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    before = read_cpu_times(stat)
    assert before == CpuTimes(total=100, steal=10)
    assert steal_share(before, CpuTimes(200, 35)) == 0.25
    assert steal_share(before, before) is None
    assert steal_share(None, before) is None
    assert read_cpu_times(tmp_path / "none") is None
    stat.write_text("intr 5\n")
    assert read_cpu_times(stat) is None


def test_the_same_on_uvloop(server_type: Any, chunks: Any, make_prompts: Any) -> None:
    async def run() -> tuple[str, LoadResult, Any]:
        async def script(seen: Any, reply: Any) -> None:
            await reply.chunked(chunks.reply(7), gap_s=0.002)

        server = server_type(script, idle_close_s=30.0)
        await server.start()
        result = await run_closed_loop(Target(server.url, "m"), make_prompts(60), ClosedLoop(6, window_s=0.2))
        await server.stop()
        return type(asyncio.get_running_loop()).__module__, result, server

    module, result, server = run_fast(run())
    assert module.startswith("uvloop")
    assert {r.outcome for r in result.records} == {Outcome.OK}
    assert {r.output_tokens for r in result.records} == {7}
    assert server.connections == 6
