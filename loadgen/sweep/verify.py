"""One open loop across an edge of a schedule, on every server of a verification, with the same arrivals."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from loadgen.analysis.verify_open import OpenRequest, OpenRun
from loadgen.load.open_loop import run_open_loop
from loadgen.load.record import Outcome, RequestRecord
from loadgen.load.schedule import schedule_length_s, start_offsets
from loadgen.load.shape import LoadResult, OpenLoop, Stage
from loadgen.store.folder import RunFolder
from loadgen.store.jsonl import Appender, read
from loadgen.store.model import Condition
from loadgen.sweep.cell import CellMeasurer, CellServer
from loadgen.sweep.events import Listener, Notice
from loadgen.sweep.interrupt import InterruptedRunError
from loadgen.sweep.plan import Stage as ServerStage
from loadgen.workloads.base import Prompt, PromptRequest

FILE = "open.jsonl"
SHARES = (0.8, 1.0, 1.2)
"""Stretches of equal length, relative to the rate that keeps as many requests in flight as the edge says: below it, on
it, above it; Poisson arrivals wander over it besides."""
REPEAT = 1_000_000
"""Stands for the open loop in a prompt's name, so that its prompts are nobody else's."""


@dataclass
class OpenProbe:
    """A sweep's `before_stop`: runs the open loop of each edge on each server of the last session."""

    measurer: CellMeasurer
    condition: Condition
    rates: Mapping[int, float]
    """Edge in requests in flight → arrivals per second that keep so many in flight."""
    length_s: float

    def missing(self, stage: ServerStage) -> set[str]:
        """The stage's profiles that have an open loop to come."""
        return {name for name, _ in self._missing(stage)}

    async def __call__(self, stage: ServerStage, up: Mapping[str, CellServer], listener: Listener) -> None:
        """InterruptedRunError on cancel. What stands in the folder, of a run that goes on, is not run again."""
        for name, edge in self._missing(stage):
            if name not in up:
                continue
            rate = self.rates[edge]
            listener(Notice(f"open loop across {edge} in flight: {name}, {rate:.3g} requests/s, {self.length_s:.0f} s"))
            await self._run(name, up[name], edge, rate, stage.session)

    def _missing(self, stage: ServerStage) -> list[tuple[str, int]]:
        if stage.session != self.measurer.plan.sessions - 1:
            return []
        done = {(run.profile, run.edge) for run in open_runs(self.measurer.folder)}
        return [(name, edge) for edge in self.rates for name in stage.profiles if (name, edge) not in done]

    async def _run(self, name: str, server: CellServer, edge: int, rate: float, session: int) -> None:
        shape = self._shape(edge, rate)
        sampling = replace(self.measurer.plan.sampling, temperature=self.condition.temperature)
        target = replace(server.target, sampling=sampling)
        prompts = self._prompts(edge, len(start_offsets(shape)))
        load = await run_open_loop(target, prompts, shape, cancel=self.measurer.cancel)
        if load.interrupted or self.measurer.cancel.is_set():
            raise InterruptedRunError("interrupted")
        file = Appender(self.measurer.folder.path / FILE)
        try:
            file.append(_open_run(name, edge, rate, schedule_length_s(shape), load, session))
            file.sync()
        finally:
            file.close()

    def _shape(self, edge: int, rate: float) -> OpenLoop:
        part = self.length_s / len(SHARES)
        # A server that cannot keep up must not pile requests up without end.
        return OpenLoop(
            stages=tuple(Stage(part, share * rate) for share in SHARES),
            max_concurrency=4 * edge + 16,
            seed=self.measurer.plan.seed,
        )

    def _prompts(self, edge: int, count: int) -> tuple[Prompt, ...]:
        request = PromptRequest(
            seed=self.measurer.plan.seed,
            level=edge,
            repeat=REPEAT,
            count=count,
            input_tokens=self.condition.input_tokens,
            max_tokens=self.measurer.plan.max_tokens,
        )
        name = self.condition.workload
        return self.measurer.workloads[name].prompts(request, self.measurer.count_tokens[name])


def open_runs(folder: RunFolder) -> tuple[OpenRun, ...]:
    """The open loops that stand in a verification's folder."""
    return tuple(read(folder.path / FILE, OpenRun))


def _open_run(name: str, edge: int, rate: float, length_s: float, load: LoadResult, session: int) -> OpenRun:
    begun = min((r.scheduled_s for r in load.records if r.scheduled_s is not None), default=0.0)
    requests = tuple(_request(record, begun) for record in load.records)
    return OpenRun(name, edge, rate, length_s, load.health.in_flight_mean, requests, session)


def _request(record: RequestRecord, begun: float) -> OpenRequest:
    offset = (record.scheduled_s if record.scheduled_s is not None else record.start_s) - begun
    return OpenRequest(record.prompt_id, offset, record.tpot_s if record.outcome is Outcome.OK else None)
