"""The open loop across an edge: the same arrivals on every server, once, and what it leaves on disk."""

import asyncio
from pathlib import Path

import pytest

from loadgen.load.target import Target
from loadgen.metrics.scrape import MetricsClient
from loadgen.profiles.loader import load_profile
from loadgen.simulator.launch import LaunchOptions, launch
from loadgen.simulator.server import SimulatorServer
from loadgen.store.folder import create_run
from loadgen.store.model import Condition
from loadgen.sweep.cell import CellMeasurer, CellServer
from loadgen.sweep.events import Notice, SweepEvent
from loadgen.sweep.interrupt import InterruptedRunError
from loadgen.sweep.plan import Stage, SweepPlan
from loadgen.sweep.verify import OpenProbe, open_runs
from loadgen.workloads.lengths import ratio_counter
from loadgen.workloads.registry import get_workload

CODE = Condition("code-edit", 200, 0.0)
PLAN = SweepPlan(("baseline", "ngram"), (CODE,), (1,), 1, 7, "together", max_tokens=8)


def measurer(folder: Path, plan: SweepPlan = PLAN) -> CellMeasurer:
    made = CellMeasurer(plan, create_run("verify", folder), {"code-edit": get_workload("code-edit")}, asyncio.Event())
    made.count_tokens = {"code-edit": ratio_counter(4.0)}
    return made


async def serve(name: str) -> tuple[SimulatorServer, CellServer]:
    parts = launch(load_profile(name, Path("server_profiles")), LaunchOptions(noise="off"))
    server = SimulatorServer(parts.core, parts.times, parts.answers, parts.spec, None)
    url = f"http://127.0.0.1:{await server.start('127.0.0.1', 0)}"
    return server, CellServer(Target(url, parts.spec.model_id), MetricsClient(url), 0)


async def test_each_server_sees_the_same_arrivals_once(tmp_path: Path) -> None:
    made = measurer(tmp_path)
    up = {name: await serve(name) for name in PLAN.profiles}
    events: list[SweepEvent] = []
    probe = OpenProbe(made, CODE, {3: 20.0}, 0.9)
    stage = Stage(0, PLAN.profiles, ())
    for _ in range(2):
        await probe(stage, {name: server for name, (_, server) in up.items()}, events.append)
    for server, cell_server in up.values():
        await cell_server.metrics.close()
        await server.stop()
    runs = open_runs(made.folder)
    assert [(run.profile, run.edge) for run in runs] == [("baseline", 3), ("ngram", 3)]
    first, second = runs
    assert len(first.requests) > 5
    assert {request.prompt_id for request in first.requests} == {request.prompt_id for request in second.requests}
    assert all(request.tpot_s is not None and request.tpot_s > 0 for request in (*first.requests, *second.requests))
    offsets = [sorted(request.offset_s for request in run.requests) for run in runs]
    assert offsets[0] == pytest.approx(offsets[1], abs=1e-6)
    assert first.length_s == pytest.approx(0.9)
    assert [event.text for event in events if isinstance(event, Notice)] == [
        "open loop across 3 in flight: baseline, 20 requests/s, 1 s",
        "open loop across 3 in flight: ngram, 20 requests/s, 1 s",
    ]


async def test_only_the_last_session_runs_it(tmp_path: Path) -> None:
    plan = SweepPlan(("baseline",), (CODE,), (1,), 1, 7, "together", sessions=3)
    made = measurer(tmp_path, plan)
    # No server is there: a request would fail.
    await OpenProbe(made, CODE, {3: 20.0}, 0.9)(Stage(1, ("baseline",), ()), {}, lambda event: None)
    assert open_runs(made.folder) == ()


async def test_ctrl_c_ends_it_and_leaves_nothing_half(tmp_path: Path) -> None:
    made = measurer(tmp_path)
    server, cell_server = await serve("baseline")
    made.cancel.set()
    with pytest.raises(InterruptedRunError):
        await OpenProbe(made, CODE, {3: 20.0}, 5.0)(
            Stage(0, ("baseline",), ()), {"baseline": cell_server}, lambda event: None
        )
    await cell_server.metrics.close()
    await server.stop()
    assert open_runs(made.folder) == ()
