"""One short cell with usage in every chunk per profile and condition, after the cells that decide (issue 4)."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from loadgen.clock import utc_now
from loadgen.errors import ServerError
from loadgen.load.record import Outcome, RequestRecord
from loadgen.load.shape import ClosedLoop, LoadResult, WindowHooks
from loadgen.load.summary import Distribution, distribution
from loadgen.metrics.scrape import wait_idle
from loadgen.store.diagnostic import REPEAT, DiagnosticCell, append_diagnostic, diagnostics
from loadgen.store.model import CellKey
from loadgen.sweep.cell import CellMeasurer, CellServer
from loadgen.sweep.events import Listener, Notice
from loadgen.sweep.interrupt import InterruptedRunError
from loadgen.sweep.plan import Stage
from loadgen.workloads.base import Prompt, PromptRequest


def middle_level(levels: Sequence[int]) -> int:
    """The level in the middle; of two the higher one."""
    return sorted(levels)[len(levels) // 2]


@dataclass
class DiagnosticProbe:
    """A sweep's `before_stop`: diagnoses the stage's servers, in the first session, what is not diagnosed yet."""

    measurer: CellMeasurer

    def missing(self, stage: Stage) -> set[str]:
        """The stage's profiles that have a verdict cell to be diagnosed beside, and no diagnosis of it."""
        return {key.profile for key, _ in self._missing(stage)}

    async def __call__(self, stage: Stage, up: Mapping[str, CellServer], listener: Listener) -> None:
        """InterruptedRunError on cancel. A diagnosis that fails is told and left out: the sweep goes on."""
        folder = self.measurer.folder
        for key, request_s in self._missing(stage):
            if key.profile not in up:
                continue
            where = f"{key.profile} on {key.condition.workload}, {key.level} in flight"
            listener(Notice(f"diagnosis: tokens per chunk of {where}"))
            try:
                append_diagnostic(folder.path, await self._measure(key, up[key.profile], request_s))
            except ServerError as error:
                folder.append_event("diagnosis-failed", str(error), cell=str(key))
                listener(Notice(f"The diagnosis of {key.profile} failed: {error}"))

    def _missing(self, stage: Stage) -> list[tuple[CellKey, float]]:
        """(what is not diagnosed yet, mean seconds of its requests)."""
        if stage.session != 0:
            return []
        plan = self.measurer.plan
        done = {cell.key for cell in diagnostics(self.measurer.folder.path)}
        level = middle_level(plan.levels)
        keys = [CellKey(name, condition, level, REPEAT) for condition in plan.conditions for name in stage.profiles]
        timed = [(key, self._request_s(key)) for key in keys if key not in done]
        return [(key, seconds) for key, seconds in timed if seconds is not None]

    async def _measure(self, key: CellKey, server: CellServer, request_s: float) -> DiagnosticCell:
        """One window like the verdict cells' of this level, but for the usage; no warm-up, for those were there."""
        measurer = self.measurer
        sampling = replace(measurer.plan.sampling, temperature=key.condition.temperature)
        target = replace(server.target, sampling=sampling, continuous_usage=True)
        shape = self._shape(key.level, request_s)
        started_at = utc_now()
        prompts = self._prompts(key, shape, request_s)
        await wait_idle(server.metrics)
        load = await measurer.run_load(
            target, prompts, shape, WindowHooks(), request_estimate_s=request_s, cancel=measurer.cancel
        )
        if load.interrupted or measurer.cancel.is_set():
            raise InterruptedRunError("interrupted")
        if not any(record.outcome is Outcome.OK for record in load.records):
            first = next((r.error or str(r.outcome) for r in load.records), "no request was sent")
            raise ServerError(f"No request with usage in every chunk succeeded ({first}).")
        return diagnostic_cell(key, load, started_at)

    def _request_s(self, key: CellKey) -> float | None:
        """Mean seconds of a request in the verdict cells of this level; None without any: nothing to set beside it."""
        found = [
            cell.e2e_s.mean for cell in self.measurer.folder.cells() if replace(cell.key, repeat=key.repeat) == key
        ]
        known = [mean for mean in found if mean is not None]
        return sum(known) / len(known) if known else None

    def _shape(self, level: int, request_s: float) -> ClosedLoop:
        shape = self.measurer.plan.shape
        window_s = min(max(shape.window_s, shape.window_requests * request_s), shape.max_window_s)
        return ClosedLoop(
            concurrency=level, window_s=window_s, max_window_s=window_s, settle_s=shape.settle_for(level, request_s)
        )

    def _prompts(self, key: CellKey, shape: ClosedLoop, request_s: float) -> tuple[Prompt, ...]:
        """As many as last even if requests are twice as fast as before."""
        seconds = shape.window_s + shape.settle_s + 2 * request_s
        request = PromptRequest(
            seed=self.measurer.plan.seed,
            level=key.level,
            repeat=REPEAT,
            count=min(2 * key.level * math.ceil(seconds / max(request_s, 0.01)), 20_000),
            input_tokens=key.condition.input_tokens,
            max_tokens=self.measurer.plan.max_tokens,
        )
        name = key.condition.workload
        return self.measurer.workloads[name].prompts(request, self.measurer.count_tokens[name])


def diagnostic_cell(key: CellKey, load: LoadResult, started_at: str) -> DiagnosticCell:
    """The facts of one diagnosis. A chunk counts where it arrived in the window, a request where it ended in it."""
    opened, closed = load.window_open_s, load.window_close_s
    good = [r for r in load.records if r.outcome is Outcome.OK]
    ended = [r for r in good if opened <= (r.last_token_s or r.end_s) < closed]
    counts = list(_chunk_tokens(good, opened, closed))
    return DiagnosticCell(
        key=key,
        started_at=started_at,
        window_s=load.window_s,
        output_tokens_per_s=load.output_tokens_per_s,
        requests=len(ended),
        uncounted=sum(r.chunk_tokens is None for r in good),
        tpot_s=distribution(r.tpot_s for r in ended),
        tokens_per_chunk=distribution(counts),
        chunks_by_tokens=tuple(sorted(Counter(counts).items())),
        acceptance_rate=_told(good, "draft_acceptance_rate"),
        acceptance_length=_told(good, "mean_acceptance_length"),
    )


def _chunk_tokens(records: Iterable[RequestRecord], opened: float, closed: float) -> Iterable[int]:
    for record in records:
        for time_s, count in zip(record.chunk_times_s, record.chunk_tokens or (), strict=False):
            if opened <= time_s < closed:
                yield count


def _told(records: Iterable[RequestRecord], figure: str) -> Distribution:
    """Without a draft vLLM sends 1.0 and 0.0, which nobody measured."""
    told = [r.spec_decode for r in records if r.spec_decode]
    return distribution(one.get(figure) for one in told if one.get("num_spec_steps", 1.0) > 0)
