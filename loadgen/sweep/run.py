"""The whole experiment: servers up and down in their order, cell after cell, progress told as events."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from loadgen.clock import now_s
from loadgen.engines.base import Engine, EngineEvent, ReadyServer, StartRequest
from loadgen.errors import ServerError, UsageError
from loadgen.load.target import Target
from loadgen.metrics.scrape import MetricsClient
from loadgen.store.folder import RunFolder
from loadgen.store.model import CellKey, CellResult, ServerFacts
from loadgen.sweep.cell import CellMeasurer, CellServer
from loadgen.sweep.estimate import SIMULATOR, Speed, TimeLeft
from loadgen.sweep.events import CellFailed, CellFinished, CellProgress, CellStarted, Listener, Notice, ServerProgress
from loadgen.sweep.interrupt import unless_cancelled
from loadgen.sweep.plan import Stage, SweepPlan, stage_starts, stages
from loadgen.sweep.refine import Refiner
from loadgen.sweep.simulated import SENTENCE, mark_if_simulated
from loadgen.sweep.tokens import measure_chars_per_token
from loadgen.workloads.lengths import ratio_counter

BeforeStop = Callable[[Stage, Mapping[str, CellServer], Listener], Coroutine[Any, Any, None]]
"""Called once all cells of a stage stand, with the servers that are up, by profile."""


class Probe(Protocol):
    """What is measured once a stage's cells stand, while its servers are still up."""

    def missing(self, stage: Stage) -> set[str]:
        """Profiles whose servers it still needs in this stage."""

    async def __call__(self, stage: Stage, up: Mapping[str, CellServer], listener: Listener) -> None:
        """InterruptedRunError on cancel."""


MAX_RESTARTS = 3
"""Starts of one profile's server after it died, in one stage; a server that dies at a level dies again."""


@dataclass
class SweepRun:
    """Runs a plan. `cancel` ends it wherever it waits; what was measured stands in the folder by then."""

    plan: SweepPlan
    engine: Engine
    folder: RunFolder
    measurer: CellMeasurer
    starts: dict[str, StartRequest]
    """Profile name → how its server starts."""
    target: Target
    """Model and URL are filled in per server."""
    listener: Listener
    cancel: asyncio.Event
    chars_per_token: dict[str, float] | None = None
    """Known already when a run is resumed; else the first server tells."""
    before_stop: BeforeStop | None = None
    also_wanted: Callable[[Stage], set[str]] | None = None
    """Profiles whose servers `before_stop` still needs: they start even where all cells of the stage stand."""
    speed: Speed = SIMULATOR
    """What is taken for the servers until they are measured: for the time that is left."""
    refiner: Refiner | None = None
    """Asks for more cells once the first session's stand; later sessions measure them too."""
    _up: dict[str, tuple[ReadyServer, CellServer]] = field(default_factory=dict)
    _start_numbers: dict[str, int] = field(default_factory=dict)

    async def run(self) -> None:
        """Measures every cell that does not stand in the folder yet.

        ServerError if a server cannot be started, InterruptedRunError on cancel; either way all servers are down.
        """
        cells = self.folder.cells()
        measured = {cell.key for cell in cells}
        self._start_numbers = {}
        for cell in cells:
            seen = self._start_numbers.get(cell.key.profile, -1)
            self._start_numbers[cell.key.profile] = max(seen, cell.server_start)
        plan = stages(self.plan)
        last_of_first = [stage for stage in plan if stage.session == 0][-1]
        time_left = TimeLeft.of(self.plan, self.speed)
        for cell in cells:
            time_left.learn(cell.key, cell.e2e_s.mean, None)
        together = self.plan.order == "together"
        self._progress = _Progress(time_left, [k for s in plan for k in s.cells], measured, together=together)
        try:
            for stage in plan:
                grows = self.refiner is not None and stage.session == 0 and len(stage.profiles) > 1
                await self._run_stage(self._grown(stage), measured, grows=grows)
                if stage is last_of_first and not grows:
                    await self._refine_in_blocks(measured)
        finally:
            await self._stop_all()

    def _grown(self, stage: Stage) -> Stage:
        """The stage with the cells that refining added to the first session."""
        if self.refiner is None or stage.session == 0:
            return stage
        extra = [replace(key, session=stage.session) for key in self.refiner.asked() if key.profile in stage.profiles]
        self._progress.add(extra)
        return replace(stage, cells=(*stage.cells, *extra))

    async def _refine_in_blocks(self, measured: set[CellKey]) -> None:
        """Rounds of one server after the other, where both cannot be up together; the order turns each round."""
        turn = self.plan.profiles[::-1]
        while keys := self._more():
            for profile in turn:
                cells = tuple(key for key in keys if key.profile == profile)
                await self._run_stage(Stage(0, (profile,), cells), measured)
            turn = turn[::-1]

    def _more(self) -> list[CellKey]:
        keys = list(self.refiner.more(self._progress.time_left)) if self.refiner else []
        self._progress.add(keys)
        return keys

    async def _run_stage(self, stage: Stage, measured: set[CellKey], *, grows: bool = False) -> None:
        """With `grows` the servers stay up for the cells that refining adds."""
        missing = [key for key in stage.cells if key not in measured]
        if not missing and grows:
            missing = self._more()
        also = self.also_wanted(stage) if self.also_wanted else set()
        if not missing and not also:
            return
        wanted = set(stage.profiles) if grows else {key.profile for key in missing} | also
        await self._start_all([name for name in stage.profiles if name in wanted], stage.session)
        restarts = dict.fromkeys(stage.profiles, 0)
        while missing:
            for key in missing:
                await self._measure(key, stage, restarts)
            missing = self._more() if grows else []
        if self.before_stop is not None:
            up = {name: server for name, (_, server) in self._up.items()}
            await unless_cancelled(self.cancel, self.before_stop(stage, up, self.listener))
        await self._stop_all()

    async def _measure(self, key: CellKey, stage: Stage, restarts: dict[str, int]) -> None:
        progress = self._progress
        index = progress.order(key)
        if key.profile not in self._up:
            self._fail(key, f"the server of {key.profile} died {MAX_RESTARTS} times and was not started again")
            return
        ready, server = self._up[key.profile]
        self.listener(CellStarted(key, index, progress.total))
        started = now_s()
        try:
            result = await self.measurer.measure(
                key, index, server, lambda load: self.listener(CellProgress(key, load))
            )
        except ServerError as error:
            await self._after_failure(key, stage, ready, str(error), restarts)
            return
        seconds = now_s() - started
        progress.done(key, result, seconds)
        self.listener(CellFinished(result, index, progress.total, seconds, progress.remaining_s()))

    async def _after_failure(
        self, key: CellKey, stage: Stage, ready: ReadyServer, reason: str, restarts: dict[str, int]
    ) -> None:
        """The cell failed; a server that died is started again, so that one bad level does not end the run."""
        died = await self.engine.check_alive(ready)
        self._fail(key, f"{reason} {died}" if died else reason)
        if died is None:
            return
        await self._stop(key.profile)
        restarts[key.profile] += 1
        if restarts[key.profile] <= MAX_RESTARTS:
            self.listener(Notice(f"The server of {key.profile} died; it is started again."))
            await self._start_all([key.profile], stage.session)

    def _fail(self, key: CellKey, reason: str) -> None:
        self._progress.done(key)
        self.folder.append_event("cell-failed", reason, cell=str(key))
        self.listener(CellFailed(key, reason))

    async def _start_all(self, names: list[str], session: int) -> None:
        """All of them are up; if one fails or the user stops, none is left starting."""
        starts = [asyncio.ensure_future(unless_cancelled(self.cancel, self._start(name, session))) for name in names]
        try:
            await asyncio.wait(starts, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            # A second Ctrl-C cancels the wait itself; the starts still end here, or their errors come as tracebacks.
            for start in starts:
                start.cancel()
            ended = await asyncio.gather(*starts, return_exceptions=True)
        # The first fault is the cause; the others were cancelled because of it.
        faults = [fault for fault in ended if isinstance(fault, BaseException)]
        for fault in sorted(faults, key=lambda fault: isinstance(fault, asyncio.CancelledError)):
            raise fault
        if not self.measurer.count_tokens:
            await self._learn_token_length()

    async def _learn_token_length(self) -> None:
        if self.chars_per_token is None:
            _, server = next(iter(self._up.values()))
            ratios = await measure_chars_per_token(server.target, self.measurer.workloads, self.plan.seed)
            self.folder.append_event("tokens", "characters per token", chars_per_token=ratios)
            self.chars_per_token = ratios
        self.measurer.count_tokens = {name: ratio_counter(ratio) for name, ratio in self.chars_per_token.items()}

    async def _start(self, name: str, session: int) -> None:
        ready = await self.engine.start(self.starts[name], self._on_engine)
        number = self._start_numbers.get(name, -1) + 1
        self._start_numbers[name] = number
        target = replace(self.target, url=ready.url, model=ready.model)
        metrics = MetricsClient(ready.url)
        self._up[name] = (ready, CellServer(target, metrics, number))
        self._progress.started(name, session, ready.start_s)
        if await mark_if_simulated(self.folder, metrics):
            self.listener(Notice(SENTENCE))
        self.folder.append_server(
            ServerFacts(
                profile=name,
                session=session,
                url=ready.url,
                model=ready.model,
                version=ready.version,
                start_s=ready.start_s,
                command=ready.command,
                effective=dict(ready.effective),
                max_model_len=ready.max_model_len,
            )
        )

    async def _stop(self, name: str) -> None:
        ready, server = self._up.pop(name)
        with contextlib.suppress(Exception):
            await server.metrics.close()
        await self.engine.stop(ready, self._on_engine)

    async def _stop_all(self) -> None:
        await asyncio.gather(*(self._stop(name) for name in tuple(self._up)))

    def _on_engine(self, event: EngineEvent) -> None:
        # A full disk must not keep a server from being stopped; the next cell's write says what is wrong.
        with contextlib.suppress(UsageError):
            self.folder.append_event("server", f"{event.profile}: {event.phase} {event.detail}".strip())
        self.listener(ServerProgress(event))


class _Progress:
    """Which cells are left, and for how long."""

    def __init__(
        self, time_left: TimeLeft, keys: list[CellKey], measured: set[CellKey], *, together: bool = True
    ) -> None:
        self.time_left = time_left
        self._measured = measured
        self._together = together
        self._order = {key: index for index, key in enumerate(keys)}
        self._left = [key for key in keys if key not in measured]
        self._started: set[tuple[str, int]] = set()
        self.total = len(keys)

    def add(self, keys: list[CellKey]) -> None:
        """More cells; those that stand already count as done."""
        new = [key for key in keys if key not in self._order]
        self._order.update({key: self.total + number for number, key in enumerate(new)})
        self._left += [key for key in new if key not in self._measured]
        self.total += len(new)

    def order(self, key: CellKey) -> int:
        return self._order[key]

    def started(self, profile: str, session: int, seconds: float) -> None:
        """A server is up."""
        self._started.add(("" if self._together else profile, session))
        self.time_left.learn_start(seconds)

    def done(self, key: CellKey, result: CellResult | None = None, seconds: float = 0.0) -> None:
        self._left.remove(key)
        if result is not None:
            self.time_left.learn(key, result.e2e_s.mean, seconds)

    def remaining_s(self) -> float:
        starts = stage_starts(self._left, together=self._together) - self._started
        return self.time_left.remaining_s(tuple(self._left), len(starts))
