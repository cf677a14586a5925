"""The driver: absolute deadlines, one serial API process, engine death."""

import asyncio
import dataclasses
import itertools
from typing import Any

import pytest

from loadgen.simulator.apiprocess import ApiProcess
from loadgen.simulator.driver import Driver
from loadgen.simulator.model import SimRequest, StepResult

REQUEST = SimRequest("a", (20, 21), max_tokens=30, ignore_eos=True)


class Recorder:
    """A sink that remembers."""

    def __init__(self) -> None:
        self.steps: list[tuple[float, float]] = []
        self.lateness: list[float] = []
        self.dead = asyncio.Event()
        self.done = asyncio.Event()

    def deliver(self, result: StepResult, begun_s: float, due_s: float) -> None:
        self.steps.append((begun_s, due_s))
        if any(output.finish_reason for output in result.outputs):
            self.done.set()

    def late(self, lateness_s: float) -> None:
        self.lateness.append(lateness_s)

    def engine_died(self) -> None:
        self.dead.set()


async def test_each_step_begins_at_the_deadline_of_the_one_before(scripted_core: Any) -> None:
    sink = Recorder()
    driver = Driver(scripted_core(step_s=0.003), sink)
    driver.submit(REQUEST, 0.0)
    await asyncio.wait_for(sink.done.wait(), 5)
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
    clock_s = 100.0

    def clock() -> float:
        return clock_s + 50.0 * (next(ticks) > 6)

    driver = Driver(scripted_core(step_s=0.004), sink, clock)
    driver.submit(REQUEST, 0.0)
    await asyncio.wait_for(sink.done.wait(), 5)
    driver.stop()
    assert [round(due - 100.0, 6) for _, due in sink.steps] == [round(0.004 * (i + 1), 6) for i in range(30)]
    assert max(sink.lateness) > 49


async def test_requests_of_one_turn_share_the_first_step(scripted_core: Any) -> None:
    core, sink = scripted_core(), Recorder()
    driver = Driver(core, sink)
    for name in "abc":
        driver.submit(SimRequest(name, (20,), max_tokens=2), 0.0)
    await asyncio.wait_for(sink.done.wait(), 5)
    driver.stop()
    assert core.steps == 2


async def test_an_idle_engine_starts_again(scripted_core: Any) -> None:
    core, sink = scripted_core(), Recorder()
    driver = Driver(core, sink)
    for name in "ab":
        sink.done.clear()
        driver.submit(SimRequest(name, (20,), max_tokens=1), 0.0)
        await asyncio.wait_for(sink.done.wait(), 5)
        await asyncio.sleep(0.01)
    assert len(sink.steps) == 2
    assert sink.steps[1][0] > sink.steps[0][1]


async def test_a_core_that_raises_is_dead(scripted_core: Any, caplog: Any) -> None:
    sink = Recorder()
    driver = Driver(scripted_core(crash_at_step=3), sink)
    driver.submit(REQUEST, 0.0)
    await asyncio.wait_for(sink.dead.wait(), 5)
    assert driver.dead
    assert len(sink.steps) == 2
    assert "scripted" in caplog.text


class Stream:
    def __init__(self, log: list[str], name: str) -> None:
        self.queued = False
        self._log = log
        self._name = name

    def flush(self) -> None:
        self._log.append(self._name)


async def test_chunks_leave_one_after_the_other() -> None:
    now = 10.0
    sent: list[str] = []
    api = ApiProcess(0.1, lambda: now)
    streams = [Stream(sent, name) for name in "abc"]
    assert [api.offer(stream, 10.0) for stream in streams] == [True, True, True]
    assert api.offer(streams[0], 10.0) is False
    api.pump()
    assert sent == []
    now = 10.1
    api.pump()
    assert sent == ["a"]
    now = 10.25
    api.pump()
    assert sent == ["a", "b"]
    assert api.waiting == 1
    assert api.offer(streams[0], 10.25) is True
    now = 10.4
    api.pump()
    assert sent == ["a", "b", "c", "a"]
    api.stop()


async def test_a_saturated_api_process_merges_outputs(run_server: Any, scripted_core: Any, sim_spec: Any) -> None:
    spec = dataclasses.replace(sim_spec, api_chunk_s=0.01)
    async with run_server(scripted_core(step_s=0.001), spec) as sim:
        reply = await sim.complete(
            stream=True, max_tokens=60, ignore_eos=True, return_token_ids=True, stream_options={"include_usage": True}
        )
        text = (await sim.ask("GET", "/metrics")).body.decode()
    sizes = [len(e["choices"][0]["token_ids"]) for e in reply.events if e["choices"]]
    assert sum(sizes) == 60
    assert max(sizes) > 1
    assert "loadgen_sim_merged_outputs_total 0.0" not in text


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
