"""A whole refined run with an engine and cells that are written down: order, resume, sessions, servers."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from loadgen.analysis.refine import LOOKS
from loadgen.engines.base import EngineListener, ReadyServer, StartRequest
from loadgen.load.shape import ClientHealth, LoadProgress
from loadgen.load.summary import Distribution
from loadgen.load.target import Target
from loadgen.metrics.model import GaugeSummary
from loadgen.profiles.model import ServerProfile
from loadgen.store.folder import RunFolder
from loadgen.store.model import CellKey, CellResult, Condition, Manifest
from loadgen.sweep.cell import CellMeasurer, CellServer
from loadgen.sweep.events import SweepEvent
from loadgen.sweep.interrupt import InterruptedRunError
from loadgen.sweep.plan import SweepPlan
from loadgen.sweep.refine import Refiner
from loadgen.sweep.run import SweepRun

TURN = 10.6
CODE = Condition("code-edit", 512, 0.0)
PROFILES = ("baseline", "ngram")


class WrittenEngine:
    """Counts its starts."""

    name = "simulator"
    simulated = True

    def __init__(self, *, together: bool) -> None:
        self.can_run_together = together
        self.started: list[str] = []
        self.up: set[str] = set()

    async def start(self, request: StartRequest, listener: EngineListener) -> ReadyServer:
        name = request.profile.name
        self.started.append(name)
        self.up.add(name)
        return ReadyServer(name, "http://127.0.0.1:9", "m", 4096, None, 0.0, effective={"max_num_seqs": 64})

    async def stop(self, server: ReadyServer, listener: EngineListener) -> None:
        self.up.discard(server.profile)

    async def check_alive(self, server: ReadyServer) -> str | None:
        return None

    async def close(self) -> None:
        """Nothing is left."""


class WrittenMeasurer(CellMeasurer):
    """Cells whose ratio turns at 10.6, with a scatter of 1 % that each key keeps; stops after `until` cells."""

    until: int = 10_000
    order: list[CellKey]

    async def measure(
        self, key: CellKey, order: int, server: CellServer, on_progress: Callable[[LoadProgress], None]
    ) -> CellResult:
        if len(self.order) >= self.until:
            raise InterruptedRunError("interrupted")
        self.order.append(key)
        speedup = math.exp(-0.25 * math.log2(key.level / TURN)) if key.profile == "ngram" else 1.0
        rate = 100.0 * key.level * speedup * math.exp(0.01 * math.sin(hash((key.level, key.repeat, key.session))))
        result = written_cell(key, order, rate, server.start_number)
        self.folder.append_cell(result)
        return result


def written_cell(key: CellKey, order: int, rate: float, start: int) -> CellResult:
    flat = Distribution(40, 0.05, 0.05, 0.05, 0.05, 0.05)
    tpot = replace(flat, mean=key.level / rate, p50=key.level / rate)
    return CellResult(
        key=key,
        order=order,
        started_at="2026-11-29T16:20:00.000Z",
        window_s=2.5,
        output_tokens_per_s=rate,
        requests_per_s=rate / 128,
        outcomes={"ok": 40},
        ttft_s=flat,
        tpot_s=tpot,
        e2e_s=flat,
        chunk_gap_s=flat,
        output_tokens=replace(flat, mean=128.0),
        prompt_tokens=flat,
        client=ClientHealth(0.001, 0.1, float(key.level), 0.0),
        window=None,
        idle=None,
        gauges=GaugeSummary(5, float(key.level), float(key.level), 0.0, 0.0, 0.3, 0.01, 0.02),
        client_tokens_total=5120,
        token_sources={"server": 40},
        server_start=start,
    )


def manifest_of(plan: SweepPlan) -> Manifest:
    return Manifest(
        run_id="r",
        created_at="",
        loadgen_version="0",
        argv=(),
        engine="simulator",
        engine_reason="",
        simulated=True,
        profiles=PROFILES,
        against="baseline",
        methods={"baseline": "none", "ngram": "ngram"},
        num_speculative_tokens={"ngram": 4},
        conditions=(CODE,),
        levels=plan.levels,
        repeats=plan.repeats,
        sessions=plan.sessions,
        seed=1,
        quick=False,
        order=plan.order,
        sampling={},
        hardware={},
        settings={"looks": LOOKS},
    )


def run_once(path: Path, plan: SweepPlan, until: int = 10_000) -> tuple[list[CellKey], WrittenEngine]:
    """What was measured, in order, and the engine; what stands in the folder is not measured again."""
    path.mkdir(exist_ok=True)
    folder = RunFolder(path)
    folder.write_manifest(manifest_of(plan))
    heard: list[SweepEvent] = []
    engine = WrittenEngine(together=plan.order == "together")

    async def go() -> None:
        cancel = asyncio.Event()
        measurer = WrittenMeasurer(plan, folder, {}, cancel)
        measurer.until, measurer.order = until, order
        starts = {name: StartRequest(ServerProfile(name, {}), path / "c.yaml", path / "s.log") for name in PROFILES}
        refiner = Refiner(folder, heard.append, 0.10, LOOKS)
        run = SweepRun(
            plan, engine, folder, measurer, starts, Target("", ""), heard.append, cancel, {"code-edit": 4.0},
            refiner=refiner,
        )  # fmt: skip
        await run.run()

    order: list[CellKey] = []
    try:
        asyncio.run(go())
    except InterruptedRunError:
        assert until < 10_000
    finally:
        folder.close()
    assert not engine.up
    return order, engine


def plan_of(order: str = "together", sessions: int = 1) -> SweepPlan:
    return SweepPlan(PROFILES, (CODE,), (1, 4, 8, 16, 32), 1, 1, order, sessions)


def test_together_the_servers_stay_up_and_cells_gather_at_the_turn(tmp_path: Path) -> None:
    order, engine = run_once(tmp_path / "run", plan_of())
    assert engine.started == ["baseline", "ngram"]
    later = order[10:]
    assert later
    assert {key.level for key in later} <= set(range(8, 17))
    assert len({*order}) == len(order)


def test_in_blocks_each_round_starts_one_server_after_the_other(tmp_path: Path) -> None:
    _, engine = run_once(tmp_path / "run", plan_of("blocks"))
    assert engine.started[:4] == ["baseline", "ngram", "ngram", "baseline"]
    assert len(engine.started) % 2 == 0


@pytest.mark.parametrize("until", [7, 12, 17])
def test_a_resumed_run_measures_what_an_unbroken_one_does(tmp_path: Path, until: int) -> None:
    whole, _ = run_once(tmp_path / "whole", plan_of())
    first, _ = run_once(tmp_path / "broken", plan_of(), until)
    rest, _ = run_once(tmp_path / "broken", plan_of())
    assert len(first) == until
    assert {*first, *rest} == {*whole}
    assert len(first) + len(rest) == len(whole)


def test_later_sessions_measure_what_the_first_one_chose(tmp_path: Path) -> None:
    order, _ = run_once(tmp_path / "run", plan_of(sessions=3))
    by_session = [{replace(key, session=0) for key in order if key.session == session} for session in range(3)]
    assert len(by_session[0]) > 10
    assert by_session[1] == by_session[0]
    assert by_session[2] == by_session[0]
