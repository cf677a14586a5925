"""The driver: absolute deadlines, one serial API process, engine death."""

import asyncio
import itertools
import time
from functools import partial
from typing import Any

import pytest

from loadgen.simulator.apiprocess import Outbox
from loadgen.simulator.driver import Driver
from loadgen.simulator.model import SimRequest, StepResult

REQUEST = SimRequest("a", (20, 21), max_tokens=30, ignore_eos=True)


class Recorder:
    """A sink that remembers."""

    def __init__(self) -> None:
        self.steps: list[tuple[float, float]] = []
        self.lateness: list[float] = []
        self.refusals: list[tuple[str, str]] = []
        self.dead = asyncio.Event()
        self.done = asyncio.Event()

    def deliver(self, result: StepResult, begun_s: float, due_s: float) -> None:
        self.steps.append((begun_s, due_s))
        if any(output.finish_reason for output in result.outputs):
            self.done.set()

    def late(self, lateness_s: float) -> None:
        self.lateness.append(lateness_s)

    def refused(self, request_id: str, reason: str) -> None:
        self.refusals.append((request_id, reason))

    def engine_died(self) -> None:
        self.dead.set()


async def test_each_step_begins_at_the_deadline_of_the_one_before(scripted_core: Any) -> None:
    sink = Recorder()
    driver = Driver(scripted_core(step_s=0.003), sink)
    driver.submit(REQUEST, time.monotonic())
    await asyncio.wait_for(sink.done.wait(), 60)
    driver.stop()
    begun = [b for b, _ in sink.steps]
    due = [d for _, d in sink.steps]
    assert len(sink.steps) == 30
    assert begun[1:] == due[:-1]
    assert due[-1] - begun[0] == pytest.approx(30 * 0.003)
    assert len(sink.lateness) == 30


async def test_lateness_does_not_add_up(scripted_core: Any) -> None:
    """A clock that jumps ahead (a stalled process) makes the due steps come at once, at their own times."""
    sink = Recorder()
    ticks = itertools.count()

    def clock() -> float:
        return 100.0 + 50.0 * (next(ticks) > 6)

    driver = Driver(scripted_core(step_s=0.004), sink, clock)
    driver.submit(REQUEST, 100.0)
    await asyncio.wait_for(sink.done.wait(), 60)
    driver.stop()
    assert [round(due - 100.0, 6) for _, due in sink.steps] == [round(0.004 * (i + 1), 6) for i in range(30)]
    assert max(sink.lateness) > 49


async def test_requests_join_the_step_that_begins_after_them(scripted_core: Any) -> None:
    core, sink = scripted_core(step_s=0.01), Recorder()
    driver = Driver(core, sink)
    start = time.monotonic()
    for name, after_s in (("a", 0.0), ("b", 0.0), ("c", 0.005), ("d", 0.015)):
        driver.submit(SimRequest(name, (20,), max_tokens=10), start + after_s)
    await asyncio.wait_for(sink.done.wait(), 60)
    driver.stop()
    assert core.scheduled[:4] == [2, 3, 4, 4]


async def test_an_idle_engine_begins_when_the_request_reaches_it(scripted_core: Any) -> None:
    core, sink = scripted_core(), Recorder()
    driver = Driver(core, sink)
    start = time.monotonic()
    for name, after_s in (("a", 0.0), ("b", 0.03)):
        driver.submit(SimRequest(name, (20,), max_tokens=1), start + after_s)
    await asyncio.sleep(0.01)
    sink.done.clear()
    await asyncio.wait_for(sink.done.wait(), 60)
    driver.stop()
    assert [begun - start for begun, _ in sink.steps] == pytest.approx([0.0, 0.03])


async def test_a_request_can_be_taken_back_on_its_way(scripted_core: Any) -> None:
    core, sink = scripted_core(), Recorder()
    driver = Driver(core, sink)
    start = time.monotonic()
    driver.submit(SimRequest("a", (20,), max_tokens=1), start + 0.01)
    driver.submit(SimRequest("b", (20,), max_tokens=1), start + 0.01)
    driver.abort("a")
    await asyncio.wait_for(sink.done.wait(), 60)
    driver.stop()
    assert [request.request_id for request in core.added] == ["b"]


async def test_what_the_core_refuses_is_told(run_server: Any, scripted_core: Any) -> None:
    async with run_server(scripted_core(refuses="no room")) as sim:
        reply = await sim.complete()
        stream = await sim.complete(stream=True)
    assert (reply.status, reply.json["error"]["message"]) == (400, "no room")
    assert stream.events[0]["error"]["message"] == "no room"


async def test_a_core_that_raises_is_dead(scripted_core: Any, caplog: Any) -> None:
    sink = Recorder()
    driver = Driver(scripted_core(crash_at_step=3), sink)
    driver.submit(REQUEST, time.monotonic())
    await asyncio.wait_for(sink.dead.wait(), 60)
    assert driver.dead
    assert len(sink.steps) == 2
    assert "scripted" in caplog.text


async def test_chunks_leave_at_their_time() -> None:
    now = 10.0
    sent: list[str] = []
    box = Outbox(lambda: now)
    for at_s, name in ((10.1, "a"), (10.2, "b"), (10.3, "c")):
        box.put(at_s, partial(sent.append, name))
    box.pump()
    assert sent == []
    now = 10.1
    box.pump()
    assert sent == ["a"]
    now = 10.4
    box.pump()
    assert sent == ["a", "b", "c"]
    box.stop()


async def test_a_saturated_api_process_holds_chunks_back(run_server: Any, scripted_core: Any) -> None:
    async with run_server(scripted_core(step_s=0.001), api_s=0.005) as sim:
        reply = await sim.complete(stream=True, max_tokens=20, ignore_eos=True)
        text = (await sim.ask("GET", "/metrics")).body.decode()
    assert len(reply.events) == 20
    (line,) = [line for line in text.splitlines() if line.startswith("loadgen_sim_api_delay_max_seconds")]
    # 20 chunks of 5 ms each against 20 steps of 1 ms: the last waits for 80 ms and its own 5.
    assert float(line.split(" ")[1]) == pytest.approx(20 * 0.005 - 19 * 0.001)


async def test_engine_death_fails_everything(run_server: Any, scripted_core: Any) -> None:
    async with run_server(scripted_core(crash_at_step=5)) as sim:
        stream, whole = await asyncio.gather(
            sim.chat(stream=True, max_tokens=50, ignore_eos=True), sim.complete(max_tokens=50, ignore_eos=True)
        )
        assert sim.server.died.is_set()
        later = await sim.complete()
        health = await sim.ask("GET", "/health")
    words = "EngineCore encountered an issue. See stack trace (above) for the root cause."
    assert stream.events[-1] == {"error": {"message": words, "type": "InternalServerError", "param": None, "code": 500}}
    assert stream.body.endswith(b"data: [DONE]\n\n")
    assert (whole.status, whole.json["error"]["message"]) == (500, words)
    assert (later.status, later.json["error"]["message"]) == (500, words)
    assert health.status == 503
