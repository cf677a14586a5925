"""Locust's two sides without Locust (threads in place of greenlets), and Locust itself, headless."""

import asyncio
import importlib.util
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from loadgen.commands.locust_job import CellOrder, LocustJob, NodeState, pack, unpack_order, unpack_state
from loadgen.commands.locust_node import LocustNode
from loadgen.commands.locust_walk import LocustWalk, shifted
from loadgen.engines.base import ReadyServer, StartRequest
from loadgen.engines.simulator import SimulatorEngine
from loadgen.load.record import Outcome, RequestRecord
from loadgen.load.target import Target
from loadgen.profiles.loader import load_profile
from loadgen.store.folder import RunFolder, create_run
from loadgen.store.model import CellKey, Condition

ROOT = Path(__file__).parent.parent.parent
CONDITION = Condition("code-edit", 200, 0.0)
PROFILE = ROOT / "server_profiles" / "baseline.yaml"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ReadyServer]:
    """A simulated server of the baseline."""
    engine = SimulatorEngine(seed=3)
    profile = load_profile("baseline", ROOT / "server_profiles")
    request = StartRequest(profile=profile, config_path=PROFILE, log_path=tmp_path / "server.log")
    ready = await engine.start(request, lambda _: None)
    yield ready
    await engine.stop(ready, lambda _: None)
    await engine.close()


def sums(folder: RunFolder, level: int) -> None:
    """What must hold of every cell, to the token."""
    for cell in folder.cells():
        records = [one.record for one in folder.requests(cell.key)]
        assert cell.key.level == level
        assert cell.outcomes["ok"] == len(records) == sum(cell.outcomes.values())
        assert len({r.prompt_id for r in records}) == len(records)
        assert cell.client_tokens_total == sum(r.output_tokens for r in records)
        # the server counted the same tokens between the two idle scrapes: none is lost, none is counted twice
        assert cell.idle is not None
        assert cell.idle.generation_tokens == cell.client_tokens_total
        assert level * 0.7 < cell.client.in_flight_mean <= level


async def test_two_nodes_fill_a_cell_and_every_token_is_the_servers(server: ReadyServer, tmp_path: Path) -> None:
    folder = create_run("locust", tmp_path / "runs")
    cells = tuple(CellKey("baseline", CONDITION, 3, repeat) for repeat in range(2))
    target = Target(url=server.url, model=server.model)
    job = LocustJob(
        cells, {"baseline": target}, {"code-edit": 3.5}, nodes=2, window_s=0.8, settle_s=0.2, min_requests=2, seed=1,
        max_tokens=24,
    )  # fmt: skip
    fired: list[tuple[str, float]] = []
    walk: LocustWalk

    def fire(kind: str, name: str, milliseconds: float, tokens: int, failure: Exception | None) -> None:
        assert name == "code-edit baseline C=3"
        assert failure is None
        fired.append((kind, milliseconds))

    nodes = [LocustNode(lambda state: walk.take(unpack_state(pack(state))), fire) for _ in range(2)]

    def say(word: str) -> None:
        for node in nodes:
            node.stop() if word == "stop" else node.window(opens=word == "open")

    def order(cell: CellOrder) -> None:
        nodes[cell.place[0]].prepare(unpack_order(pack(cell)))

    try:
        for place in (0, 1, 0, 1):
            nodes[place].user_started()
        nodes[1].user_stopped()
        walk = LocustWalk(job, folder.path, order, say)
        assert walk.level == 3
        await asyncio.to_thread(walk.run)
    finally:
        for node in nodes:
            node.close()
    assert walk.level is None
    assert [cell.key for cell in folder.cells()] == list(cells)
    sums(folder, 3)
    records = [one.record for one in folder.requests()]
    # worker numbers: node 0 holds the even ones, node 1 the odd ones
    assert {r.worker for r in records} == {0, 1, 2}
    # cases C33, C34: Locust is told our own times, to the last token and unrounded
    assert Counter(kind for kind, _ in fired) == dict.fromkeys(("POST", "TTFT", "TPOT"), len(records))
    assert sorted(ms for kind, ms in fired if kind == "POST") == pytest.approx(
        sorted((r.e2e_s or 0.0) * 1e3 for r in records), abs=0.02
    )
    assert {cell.client.processes for cell in folder.cells()} == {2}


def test_times_of_another_machine_are_moved_together() -> None:
    record = RequestRecord(
        "p", 0, Outcome.OK, start_s=10.0, end_s=12.0, first_token_s=10.5, last_token_s=11.5, output_tokens=3,
        chunk_times_s=(10.5, 11.0, 11.5),
    )  # fmt: skip
    moved = shifted(record, -4.0)
    assert (moved.start_s, moved.end_s, moved.chunk_times_s) == (6.0, 8.0, (6.5, 7.0, 7.5))
    assert (moved.ttft_s, moved.tpot_s, moved.scheduled_s) == (record.ttft_s, record.tpot_s, None)
    assert shifted(record, 0.0) is record


async def test_a_cell_that_cannot_be_measured_is_said_and_the_walk_goes_on(server: ReadyServer, tmp_path: Path) -> None:
    folder = create_run("locust", tmp_path / "runs")
    cells = (CellKey("baseline", CONDITION, 1, 0), CellKey("ngram", CONDITION, 1, 0))
    targets = {"baseline": Target("http://127.0.0.1:9", "m"), "ngram": Target(server.url, server.model)}
    job = LocustJob(cells, targets, {"code-edit": 3.5}, nodes=1, window_s=0.1, settle_s=0.0, min_requests=0, seed=1)
    walk = LocustWalk(
        job, folder.path, lambda order: walk.take(NodeState(order.number, 0, fault="gone")), lambda _: None
    )
    await asyncio.to_thread(walk.run)
    failed = [event.text for event in folder.events() if event.kind == "cell-failed"]
    assert "refused" in failed[0]
    assert failed[1] == "gone"
    assert folder.cells() == ()


@pytest.mark.locust
@pytest.mark.skipif(importlib.util.find_spec("locust") is None, reason="the extra `locust` is not installed")
async def test_c33_c34_four_locust_workers_sum_to_what_the_server_counted(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    command = [
        *("locust", "--headless", "--workers", "4", "--levels", "6", "--repeats", "1", "--window", "1.5"),
        *("--max-tokens", "24", "--runs", str(runs), "--json"),
    ]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "loadgen", *command),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, error = await process.communicate()
    assert process.returncode in (0, 1, 3), error.decode()
    assert json.loads(out)["simulated"] is True
    (path,) = runs.iterdir()
    folder = RunFolder(path)
    assert {cell.key.profile for cell in folder.cells()} == {"baseline", "ngram"}, [*folder.events()][-3:]
    sums(folder, 6)
    for cell in folder.cells():
        # six users over four workers: every worker has one or two
        assert {one.record.worker % 4 for one in folder.requests(cell.key)} == {0, 1, 2, 3}
        exact = [one.record.e2e_s for one in folder.requests(cell.key)]
        assert len(set(exact)) > 3
        assert cell.client.processes == 4
        # exact, not Locust's two digits
        assert cell.e2e_s.p50 != pytest.approx(round(cell.e2e_s.p50 or 0.0, 2), abs=1e-9)


def test_the_least_delay_of_an_order_tells_the_clocks_apart() -> None:
    state = replace(NodeState(0, 1), shift_s=-3.0)
    assert unpack_state(pack(state)) == state
