"""One sweep per GPU (the simulator: one per machine), and nothing is lost when a service ends."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from loadgen.service.problems import Refusal
from loadgen.service.queue import SweepQueue
from loadgen.service.runsfolder import RunsFolder
from loadgen.service.settings import Settings
from loadgen.service.state import RunState, standing
from loadgen.store.folder import RunFolder

MakeRun = Callable[..., RunFolder]


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[SweepQueue]:
    queue = SweepQueue(RunsFolder(settings.runs), settings)
    await queue.open()
    yield queue
    await queue.close()


def state(queue: SweepQueue, run: RunFolder) -> RunState:
    return queue.state(run.run_id, standing(run).state)[0]


async def reached(queue: SweepQueue, run: RunFolder, wanted: RunState) -> None:
    for _ in range(1500):
        if state(queue, run) is wanted and (wanted is not RunState.RUNNING or standing(run).last == "started"):
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"{wanted} never came; it is {state(queue, run)}, {standing(run)}")


def finish(run: RunFolder) -> None:
    (run.path / "go").touch()


def kinds(run: RunFolder) -> list[str]:
    return [event.kind for event in run.events()]


async def test_simulated_sweeps_run_one_after_the_other(settings: Settings, make_run: MakeRun) -> None:
    first, second, third = make_run(), make_run(), make_run()
    async with opened(settings) as queue:
        for run in (first, second, third):
            await queue.submit(run)
        await reached(queue, first, RunState.RUNNING)
        assert [queue.state(run.run_id, RunState.QUEUED)[1] for run in (first, second, third)] == [None, 1, 2]
        finish(first)
        await reached(queue, first, RunState.COMPLETED)
        await reached(queue, second, RunState.RUNNING)
        assert state(queue, third) is RunState.QUEUED
        finish(second)
        finish(third)
        await reached(queue, third, RunState.COMPLETED)


async def test_two_gpus_are_used_at_once_and_a_run_on_both_waits_for_both(
    settings: Settings, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes: dict[str, set[str]] = {}
    monkeypatch.setattr(SweepQueue, "_takes", lambda _, folder: frozenset(takes[folder.run_id]))
    one, both, other = make_run(), make_run(), make_run()
    takes |= {one.run_id: {"gpu-0"}, both.run_id: {"gpu-0", "gpu-1"}, other.run_id: {"gpu-2"}}
    async with opened(settings) as queue:
        for run in (one, both, other):
            await queue.submit(run)
        await reached(queue, one, RunState.RUNNING)
        await reached(queue, other, RunState.RUNNING)
        assert state(queue, both) is RunState.QUEUED
        finish(one)
        await reached(queue, both, RunState.RUNNING)


async def test_a_waiting_run_is_cancelled_at_once_and_can_go_on(settings: Settings, make_run: MakeRun) -> None:
    first, second = make_run(), make_run()
    async with opened(settings) as queue:
        await queue.submit(first)
        await queue.submit(second)
        await queue.cancel(second.run_id)
        assert state(queue, second) is RunState.CANCELLED
        with pytest.raises(Refusal, match="nothing to cancel"):
            await queue.cancel(second.run_id)
        await queue.submit(second)
        assert state(queue, second) is RunState.QUEUED
        with pytest.raises(Refusal, match="already"):
            await queue.submit(second)


async def test_a_running_sweep_is_interrupted(settings: Settings, make_run: MakeRun) -> None:
    run = make_run()
    async with opened(settings) as queue:
        await queue.submit(run)
        await reached(queue, run, RunState.RUNNING)
        await queue.cancel(run.run_id)
        assert state(queue, run) is RunState.STOPPING
        await reached(queue, run, RunState.CANCELLED)
        assert kinds(run) == ["queued", "started", "interrupted", "cancelled"]


async def test_a_sweep_that_does_not_heed_is_killed(
    settings: Settings, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loadgen.service.child.FINISH_S", 0.1)
    run = make_run()
    (run.path / "deaf").touch()
    async with opened(replace(settings, stop_s=0.1)) as queue:
        await queue.submit(run)
        await reached(queue, run, RunState.RUNNING)
        await queue.cancel(run.run_id)
        await reached(queue, run, RunState.CANCELLED)
        assert standing(run).sweep_pid is None


async def test_a_sweep_that_cannot_start_says_why(settings: Settings, make_run: MakeRun) -> None:
    run = make_run()
    (run.path / "fail").touch()
    async with opened(settings) as queue:
        await queue.submit(run)
        await reached(queue, run, RunState.INTERRUPTED)
    assert standing(run).reason == "The fake sweep was told to fail; remove the file."
    async with opened(settings) as queue:
        assert state(queue, run) is RunState.INTERRUPTED  # a new service does not try again by itself


async def test_a_full_queue_takes_no_more(settings: Settings, make_run: MakeRun) -> None:
    async with opened(replace(settings, max_queue=1)) as queue:
        await queue.submit(make_run())
        await queue.submit(make_run())
        with pytest.raises(Refusal) as refused:
            await queue.submit(make_run())
        assert refused.value.status_code == 429


async def test_a_stopped_service_leaves_what_the_next_one_goes_on_with(settings: Settings, make_run: MakeRun) -> None:
    first, second, done, cancelled = make_run(), make_run(), make_run(), make_run()
    async with opened(settings) as queue:
        await queue.submit(done)
        finish(done)
        await reached(queue, done, RunState.COMPLETED)
        for run in (first, second, cancelled):
            await queue.submit(run)
        await queue.cancel(cancelled.run_id)
        await reached(queue, first, RunState.RUNNING)
    assert standing(first).sweep_pid is None
    assert kinds(first)[-2:] == ["interrupted", "queued"]
    async with opened(settings) as queue:
        await reached(queue, second, RunState.RUNNING)  # it has waited longer than the interrupted one
        finish(second)
        await reached(queue, first, RunState.RUNNING)
        assert state(queue, done) is RunState.COMPLETED
        assert state(queue, cancelled) is RunState.CANCELLED


async def test_a_sweep_that_outlived_its_service_is_taken_over(settings: Settings, make_run: MakeRun) -> None:
    run, waiting = make_run(), make_run()
    killed = SweepQueue(RunsFolder(settings.runs), settings)
    await killed.open()
    await killed.submit(run)
    await killed.submit(waiting)
    await reached(killed, run, RunState.RUNNING)
    async with opened(settings) as queue:  # the first one is never closed, as after SIGKILL
        assert state(queue, run) is RunState.RUNNING
        assert state(queue, waiting) is RunState.QUEUED
        await queue.cancel(run.run_id)
        await reached(queue, run, RunState.CANCELLED)
    await killed.close()


async def test_a_sweep_of_a_terminal_is_waited_for_and_left_alone(settings: Settings, make_run: MakeRun) -> None:
    terminal, ours = make_run(), make_run()
    async with opened(settings) as queue:
        process = await asyncio.create_subprocess_exec(
            *settings.sweep, "--resume", str(terminal.path), stderr=asyncio.subprocess.DEVNULL
        )
        await reached(queue, terminal, RunState.RUNNING)
        await queue.submit(ours)
        assert state(queue, terminal) is RunState.RUNNING
        assert state(queue, ours) is RunState.QUEUED
        finish(terminal)
        await process.wait()
        await reached(queue, ours, RunState.RUNNING)
