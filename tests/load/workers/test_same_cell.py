"""One cell on a simulated server: two processes measure what one measures."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from loadgen.engines.base import ReadyServer, StartRequest
from loadgen.engines.simulator import SimulatorEngine
from loadgen.load.closed_loop import run_closed_loop
from loadgen.load.figures import load_figures
from loadgen.load.shape import ClosedLoop, LoadResult
from loadgen.load.target import Target
from loadgen.load.workers.closed_loop import run_workers
from loadgen.load.workers.pool import WorkerPool
from loadgen.metrics.scrape import MetricsClient, wait_idle
from loadgen.profiles.loader import load_profile
from loadgen.workloads.base import PromptRequest
from loadgen.workloads.lengths import ratio_counter
from loadgen.workloads.registry import get_workload

PROFILES = Path(__file__).parent.parent.parent.parent / "server_profiles"
LEVEL, COUNT, TOKENS = 4, 24, 16


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ReadyServer]:
    engine = SimulatorEngine(seed=3)
    profile = load_profile("baseline", PROFILES)
    request = StartRequest(profile, PROFILES / "baseline.yaml", tmp_path / "server.log")
    ready = await engine.start(request, lambda _: None)
    yield ready
    await engine.stop(ready, lambda _: None)
    await engine.close()


async def served_tokens(url: str) -> float:
    async with MetricsClient(url) as client:
        samples = (await wait_idle(client)).samples["vllm:generation_tokens_total"]
    return sum(sample.value for sample in samples)


async def test_two_processes_measure_the_cell_that_one_measures(server: ReadyServer) -> None:
    target = Target(server.url, server.model)
    shape = ClosedLoop(LEVEL, window_s=60.0, max_window_s=60.0, spread_s=0.1)
    cells: list[LoadResult] = []
    for repeat in range(2):
        wanted = PromptRequest(seed=1, level=LEVEL, repeat=repeat, count=COUNT, max_tokens=TOKENS)
        prompts = get_workload("code-edit").prompts(wanted, ratio_counter(3.5))
        before = await served_tokens(server.url)
        if repeat == 0:
            cells.append(await run_closed_loop(target, prompts, shape))
        else:
            async with WorkerPool(2) as pool:
                cells.append(await run_workers(pool, target, prompts, shape))
        sent = await served_tokens(server.url) - before
        assert {r.prompt_id for r in cells[-1].records} == {p.prompt_id for p in prompts}
        assert sum(r.output_tokens for r in cells[-1].records) == sent
    one, two = cells
    assert (one.health.processes, two.health.processes) == (1, 2)
    assert one.outcomes == two.outcomes
    assert {r.worker for r in one.records} == {r.worker for r in two.records} == set(range(LEVEL))
    figures = [load_figures(cell) for cell in cells]
    # rates on a shared machine, so within a factor that only a lost or doubled half would break
    for name in ("output_tokens_per_s", "in_flight_mean"):
        first, second = (found["client"].get(name, found.get(name)) for found in figures)
        assert 0.6 < second / first < 1.67, name
    assert 0.5 < figures[1]["tpot_s"]["p50"] / figures[0]["tpot_s"]["p50"] < 2.0
