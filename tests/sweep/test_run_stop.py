"""A run that is stopped, twice, while its servers are still starting."""

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest

from loadgen.engines.base import EngineListener, ReadyServer, StartRequest
from loadgen.load.target import Target
from loadgen.profiles.model import ServerProfile
from loadgen.store.folder import RunFolder
from loadgen.store.model import Condition
from loadgen.sweep.cell import CellMeasurer
from loadgen.sweep.plan import SweepPlan
from loadgen.sweep.run import SweepRun

PROFILES = ("baseline", "ngram")


class NeverReady:
    """Servers that nobody can reach; a start that is cancelled says so after some steps of the loop."""

    name = "url"
    simulated = False
    can_run_together = True

    def __init__(self) -> None:
        self.starting: set[str] = set()
        self.all_starting = asyncio.Event()

    async def start(self, request: StartRequest, listener: EngineListener) -> ReadyServer:
        self.starting.add(request.profile.name)
        if self.starting == set(PROFILES):
            self.all_starting.set()
        try:
            return await asyncio.Future[ReadyServer]()
        finally:
            await asyncio.sleep(0)
            self.starting.discard(request.profile.name)

    async def stop(self, server: ReadyServer, listener: EngineListener) -> None:
        """Nothing came up."""

    async def check_alive(self, server: ReadyServer) -> str | None:
        return None

    async def close(self) -> None:
        """Nothing is left."""


async def test_a_second_stop_while_servers_start_leaves_no_start_and_no_lost_error(tmp_path: Path) -> None:
    lost: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: lost.append(context))
    engine, cancel, folder = NeverReady(), asyncio.Event(), RunFolder(tmp_path)
    plan = SweepPlan(PROFILES, (Condition("code-edit", 512, 0.0),), (1,), 1, 1, "together", 1)
    starts = {name: StartRequest(ServerProfile(name, {}), tmp_path / "c", tmp_path / "s.log") for name in PROFILES}
    measurer = CellMeasurer(plan, folder, {}, cancel)
    run = SweepRun(plan, engine, folder, measurer, starts, Target("", ""), lambda _: None, cancel)
    task = asyncio.ensure_future(run.run())
    await engine.all_starting.wait()
    cancel.set()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert engine.starting == set()
    folder.close()
    gc.collect()
    assert lost == []
