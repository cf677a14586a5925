"""One cell on a simulated server: two processes measure what one measures."""

from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path

import pytest

from loadgen.engines.base import ReadyServer, StartRequest
from loadgen.engines.simulator import SimulatorEngine
from loadgen.load.closed_loop import run_closed_loop
from loadgen.load.figures import load_figures
from loadgen.load.shape import ClosedLoop, LoadResult
from loadgen.load.summary import distribution
from loadgen.load.target import Target
from loadgen.load.window import in_flight_mean
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
    for cell in cells:
        # the published figures are those of all records together, whichever process measured them
        figures = load_figures(cell)
        open_s, close_s = cell.window_open_s, cell.window_close_s
        ended = [r.tpot_s for r in cell.records if r.last_token_s is not None and open_s <= r.last_token_s < close_s]
        assert ended
        assert figures["tpot_s"] == asdict(distribution(ended))
        assert figures["output_tokens_per_s"] == pytest.approx(cell.output_tokens_in_window / cell.window_s)
        assert 0 < cell.output_tokens_in_window <= COUNT * TOKENS
        assert 0 < figures["client"]["in_flight_mean"] <= LEVEL
        assert in_flight_mean(cell.records, open_s, close_s) == pytest.approx(figures["client"]["in_flight_mean"])
