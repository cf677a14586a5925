"""Schedules, and the open loop on real sockets."""

import asyncio
import statistics
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.errors import UsageError
from loadgen.load.open_loop import run_open_loop
from loadgen.load.record import Outcome
from loadgen.load.schedule import schedule_length_s, start_offsets
from loadgen.load.shape import Arrival, OpenLoop, Stage


def constant(*stages: tuple[float, float], **more: Any) -> OpenLoop:
    return OpenLoop(tuple(Stage(*stage) for stage in stages), Arrival.CONSTANT, **more)


def test_constant_rate_and_stages() -> None:
    assert start_offsets(constant((1.0, 4.0))) == pytest.approx((0.0, 0.25, 0.5, 0.75))
    staged = start_offsets(constant((1.0, 2.0), (1.0, 0.0), (1.0, 4.0)))
    assert staged == pytest.approx((0.0, 0.5, 2.0, 2.25, 2.5, 2.75))
    # 1.5 intervals fit into the first stage: the half that is left counts in the second
    carried = start_offsets(constant((1.5, 1.0), (1.0, 2.0)))
    assert carried == pytest.approx((0.0, 1.0, 1.75, 2.25))


def test_poisson_has_exponential_gaps_and_follows_from_its_seed() -> None:
    shape = OpenLoop((Stage(2000.0, 5.0),), seed=3)
    offsets = start_offsets(shape)
    assert offsets == start_offsets(shape)
    assert offsets != start_offsets(OpenLoop((Stage(2000.0, 5.0),), seed=4))
    gaps = [after - before for before, after in pairwise(offsets)]
    assert statistics.mean(gaps) == pytest.approx(0.2, rel=0.05)
    assert statistics.stdev(gaps) == pytest.approx(0.2, rel=0.05)


@settings(max_examples=60, deadline=None)
@given(
    stages=st.lists(st.tuples(st.floats(0.1, 5.0), st.floats(0.0, 50.0)), min_size=1, max_size=4),
    arrival=st.sampled_from(Arrival),
)
def test_offsets_ascend_and_stay_inside(stages: list[tuple[float, float]], arrival: Arrival) -> None:
    shape = OpenLoop(tuple(Stage(*stage) for stage in stages), arrival)
    try:
        offsets = start_offsets(shape)
    except UsageError:
        return
    assert list(offsets) == sorted(offsets)
    assert offsets[0] >= 0.0
    assert offsets[-1] <= schedule_length_s(shape)
    if arrival is Arrival.CONSTANT:
        assert abs(len(offsets) - sum(duration * rate for duration, rate in stages)) <= 1.001


def test_trace_starts_at_its_first_arrival() -> None:
    assert start_offsets(OpenLoop(trace_s=(7.0, 5.0, 9.0), trace_speed=2.0)) == (0.0, 1.0, 2.0)


@pytest.mark.parametrize(
    "shape",
    [
        OpenLoop(),
        OpenLoop((Stage(1.0, 1.0),), trace_s=(1.0,)),
        OpenLoop((Stage(1.0, -1.0),)),
        constant((1.0, 0.0)),
        OpenLoop(trace_s=(1.0,), trace_speed=0.0),
    ],
)
def test_shapes_without_sense_are_refused(shape: OpenLoop) -> None:
    with pytest.raises(UsageError):
        start_offsets(shape)


async def test_c46_waiting_for_a_slot_is_reported_apart(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any
) -> None:
    # the case at a tenth of its times: 100 a second, one slot, 50 ms each, 8 requests
    async def script(seen: Any, reply: Any) -> None:
        await asyncio.sleep(0.05)
        await reply.chunked(chunks.reply(1))

    server = await start_server(script)
    shape = constant((0.08, 100.0), max_concurrency=1)
    result = await run_open_loop(target_of(server), make_prompts(8), shape)
    assert [r.outcome for r in result.records] == [Outcome.OK] * 8
    assert server.most_active == 1
    last = result.records[-1]
    assert last.queued_s > 0.25
    assert last.e2e_s is not None
    assert last.e2e_from_schedule_s is not None
    assert last.ttft_from_schedule_s is not None
    assert last.scheduled_s is not None
    assert last.e2e_from_schedule_s == pytest.approx(last.e2e_s + last.start_s - last.scheduled_s)
    assert last.e2e_from_schedule_s > last.queued_s + 0.045
    assert last.start_s - last.scheduled_s >= last.queued_s - 1e-6


async def test_starts_do_not_wait_for_ends_and_prompts_bound_the_run(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any
) -> None:
    gate = asyncio.Event()

    async def script(seen: Any, reply: Any) -> None:
        if len(reply.server.seen) == 10:
            gate.set()
        await gate.wait()
        await reply.chunked(chunks.reply(2))

    server = await start_server(script)
    async with asyncio.timeout(60):
        result = await run_open_loop(target_of(server), make_prompts(10), constant((1000.0, 200.0)))
    assert result.outcomes["ok"] == 10
    assert server.most_active == 10
    assert result.window_s < 5.0


async def test_the_start_rate_is_limited_after_a_stall(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any
) -> None:
    async def script(seen: Any, reply: Any) -> None:
        await reply.chunked(chunks.reply(1))

    server = await start_server(script)
    burst = OpenLoop(trace_s=(0.0,) * 12, max_starts_per_s=40)
    result = await run_open_loop(target_of(server), make_prompts(12), burst)
    starts = sorted(r.start_s for r in result.records)
    # 4 in each tenth of a second
    assert starts[-1] - starts[0] >= 0.19
    assert result.outcomes["ok"] == 12


async def test_cancel_ends_an_open_loop(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any, until: Any
) -> None:
    cancel = asyncio.Event()

    async def script(seen: Any, reply: Any) -> None:
        if seen.number == 2:
            cancel.set()
        await reply.chunked([chunks.text("x")] * 1000, gap_s=0.01)

    server = await start_server(script)
    shape = constant((100.0, 50.0), max_concurrency=3)
    result = await run_open_loop(target_of(server), make_prompts(500), shape, cancel=cancel)
    assert result.interrupted
    assert [r.outcome for r in result.records] == [Outcome.CANCELLED] * 3
    await until(lambda: server.disconnects == 3)
