"""Schedules, and the open loop on real sockets."""

import asyncio
import statistics
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.errors import UsageError
from loadgen.load.open_loop import run_open_loop
from loadgen.load.record import Outcome
from loadgen.load.schedule import schedule_length_s, start_offsets
from loadgen.load.shape import Arrival, OpenLoop, Stage
from loadgen.load.trace import TraceEntry, read_trace


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
    async with asyncio.timeout(10):
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


def test_traces_in_three_forms(tmp_path: Path) -> None:
    own = tmp_path / "own.jsonl"
    own.write_text('\ufeff{"arrival_s": 2.5, "input_tokens": 7}\n\n{"arrival_s": 1}\n', encoding="utf-8")
    assert read_trace(own) == (TraceEntry(1.0), TraceEntry(2.5, 7))
    mooncake = tmp_path / "mooncake.jsonl"
    mooncake.write_text('{"timestamp": 3000, "input_length": 6755, "output_length": 500, "hash_ids": [0]}\n')
    assert read_trace(mooncake) == (TraceEntry(3.0, 6755, 500),)
    burst = tmp_path / "burst.csv"
    burst.write_text("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,x\n")
    assert read_trace(burst) == (TraceEntry(5.0, 472, 18),)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"arrival_s": 1}\n{bad\n', "line 2 is not JSON"),
        ('{"x": 1}\n', "line 1 has no arrival time"),
        ('{"arrival_s": "soon"}\n', "line 1 has a value that is no number"),
        ('{"arrival_s": NaN}\n', "line 1 has a value that is no number"),
        ("[1]\n", "line 1 is not a JSON object"),
        ("\n", "holds no request"),
    ],
)
def test_a_faulty_trace_is_named_by_its_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError, match=says):
        read_trace(path)
