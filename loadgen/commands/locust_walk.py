"""The master's side of a Locust run: walks the cells, opens and closes each window, writes each cell to the run folder.

No asyncio here: Locust has patched this process. Threads are greenlets then.
"""

import math
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from loadgen.clock import now_s, utc_now
from loadgen.commands.locust_job import CellOrder, LocustJob, NodeState, boot_id
from loadgen.commands.workload_options import chosen_workload
from loadgen.load.record import Outcome, RequestRecord
from loadgen.load.shape import LoadResult
from loadgen.load.sums import WindowSums
from loadgen.metrics.delta import delta
from loadgen.metrics.gauges import gauge_sample, summarise
from loadgen.metrics.model import CounterDelta
from loadgen.metrics.parse import Snapshot, parse
from loadgen.store.folder import RunFolder
from loadgen.store.model import CellKey
from loadgen.sweep.facts import ServerSide, cell_result
from loadgen.workloads.base import PromptRequest
from loadgen.workloads.lengths import ratio_counter
from loadgen.workloads.registry import prompts_sha256

LOOK_S = 0.05
GAUGES_S = 0.5
RAMP_S = 120.0
DRAIN_S = 120.0
SPARE = 4
"""Prompts are made for requests so many times faster than those of the cell before (first: than one second)."""


class CellFailedError(Exception):
    """A cell could not be measured; the text says why."""


class LocustWalk:
    """Carries out a job; `level` is what Locust's shape asks for, None once all cells are walked."""

    def __init__(self, job: LocustJob, folder: Path, order: Callable[[CellOrder], None], say: Callable[[str], None]):
        """`order` sends a cell to one worker; `say` sends `open`, `close` or `stop` to all."""
        self.level: int | None = job.cells[0].level if job.cells else None
        self._job, self._folder = job, RunFolder(folder)
        self._order, self._say = order, say
        self._states: dict[int, NodeState] = {}
        self._number = -1
        self._records: list[RequestRecord] = []
        self._sums = WindowSums()
        self._request_s = 1.0
        self._key = job.cells[0] if job.cells else None

    def take(self, state: NodeState) -> None:
        """A worker's word; what belongs to an earlier cell is dropped."""
        if state.number != self._number or self._key is None:
            return
        self._states[state.place] = state
        for record in state.records:
            moved = shifted(record, -state.shift_s)
            self._records.append(moved)
            self._folder.append_request(self._key, moved)

    def run(self) -> None:
        """Walks all cells; a cell that fails is noted as an event, and the walk goes on."""
        self._folder.append_event("started", "Locust walks the levels")
        measured = {cell.key for cell in self._folder.cells()}
        for number, key in enumerate(self._job.cells):
            if key in measured:
                continue
            self._number, self._key, self.level = number, key, key.level
            try:
                self._measure(number, key)
            except (CellFailedError, urllib.error.URLError) as error:
                self._say("stop")
                self._folder.append_event("cell-failed", str(error), cell=str(key))
        self._folder.append_event("completed", "all cells walked")
        self._folder.close()
        self.level = None

    def _measure(self, number: int, key: CellKey) -> None:
        started_at, url = utc_now(), self._job.targets[key.profile].url
        self._states, self._records, self._sums = {}, [], WindowSums()
        before = _scrape(url)
        prompts = self._send_orders(number, key)
        self._until(lambda: self._of("holding") == key.level, RAMP_S, f"{key.level} users in flight")
        time.sleep(self._job.settle_s)
        opened = _scrape(url)
        self._say("open")
        self._sums.open_s = now_s()
        samples = [opened]
        self._window(url, samples)
        self._sums.close_s = now_s()
        self._say("close")
        closed = _scrape(url)
        self._say("stop")
        self._until(lambda: all(s.ended for s in self._states.values()), DRAIN_S, "the end of the last request")
        time.sleep(GAUGES_S)
        server = ServerSide(
            window=_delta(opened, closed),
            idle=_delta(before, _scrape(url)),
            gauges=summarise([gauge_sample(one) for one in samples], (self._sums.open_s, self._sums.close_s)),
            steal_share=None,
            start_number=0,
        )
        load = self._result()
        if not load.outcomes[Outcome.OK.value]:
            raise CellFailedError("no request succeeded")
        self._request_s = sum(r.end_s - r.start_s for r in load.records) / len(load.records)
        self._folder.append_cell(
            cell_result(key, load, server, order=number, started_at=started_at, prompts_sha256=prompts)
        )

    def _send_orders(self, number: int, key: CellKey) -> str:
        """Every worker has its order; the hash of the first prompts, which are the same for all profiles."""
        job = self._job
        seconds = job.settle_s + job.window_s + 5.0
        count = math.ceil(SPARE * key.level * max(4.0, seconds / self._request_s))
        wanted = PromptRequest(
            seed=job.seed,
            level=key.level,
            repeat=key.repeat,
            count=min(count, 20_000),
            session=key.session,
            input_tokens=key.condition.input_tokens,
            max_tokens=job.max_tokens,
        )
        name, chars = key.condition.workload, job.chars_per_token[key.condition.workload]
        for place in range(job.nodes):
            self._order(
                CellOrder(
                    number=number,
                    cell=key,
                    target=job.targets[key.profile],
                    prompts=wanted,
                    chars_per_token=chars,
                    input_lengths=job.input_lengths,
                    output_lengths=job.output_lengths,
                    place=(place, job.nodes),
                    master_s=now_s(),
                    boot_id=boot_id(),
                )
            )
        self._until(lambda: len(self._states) == job.nodes, RAMP_S, "all workers' word")
        first = replace(wanted, count=max(4 * key.level, 20))
        workload = chosen_workload(name, job.input_lengths, job.output_lengths)
        return prompts_sha256(workload.prompts(first, ratio_counter(chars)))

    def _window(self, url: str, samples: list[Snapshot]) -> None:
        open_s, finished = self._sums.open_s, self._of("finished")
        due_s = open_s + GAUGES_S
        while True:
            self._check()
            long_enough = now_s() - open_s >= self._job.window_s
            enough = self._of("finished") - finished >= self._job.min_requests
            if (long_enough and enough) or any(s.exhausted for s in self._states.values()):
                return
            if now_s() >= due_s:
                samples.append(_scrape(url))
                due_s = now_s() + GAUGES_S
            time.sleep(LOOK_S)

    def _until(self, done: Callable[[], bool], limit_s: float, what: str) -> None:
        end_s = now_s() + limit_s
        while not done():
            self._check()
            if now_s() > end_s:
                raise CellFailedError(f"waited {limit_s:g} s for {what}")
            time.sleep(LOOK_S)

    def _check(self) -> None:
        fault = next((state.fault for state in self._states.values() if state.fault), None)
        if fault is not None:
            raise CellFailedError(fault)

    def _of(self, name: str) -> int:
        return sum(getattr(state, name) for state in self._states.values())

    def _result(self) -> LoadResult:
        records = sorted(self._records, key=lambda record: record.end_s)
        for record in records:
            self._sums.add(record)
        window_s = self._sums.close_s - self._sums.open_s
        states = self._states.values()
        return self._sums.result(
            records,
            loop_lag_p99_s=max(state.loop_lag_p99_s for state in states),
            cpu_share=sum(state.cpu_s for state in states) / window_s,
            interrupted=False,
            processes=len(states),
        )


def shifted(record: RequestRecord, by_s: float) -> RequestRecord:
    """The record on another clock."""
    if not by_s:
        return record

    def moved(value: float | None) -> float | None:
        return None if value is None else value + by_s

    return replace(
        record,
        start_s=record.start_s + by_s,
        end_s=record.end_s + by_s,
        scheduled_s=moved(record.scheduled_s),
        first_token_s=moved(record.first_token_s),
        last_token_s=moved(record.last_token_s),
        first_answer_s=moved(record.first_answer_s),
        chunk_times_s=tuple(value + by_s for value in record.chunk_times_s),
    )


def _scrape(url: str) -> Snapshot:
    began_s = now_s()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{url}/metrics", timeout=10.0) as response:
        read = parse(response.read(), response.headers.get("content-type"))
    ended_s = now_s()
    return replace(read, seconds=ended_s - began_s, at_s=ended_s)


def _delta(first: Snapshot, last: Snapshot) -> CounterDelta:
    return delta(first, last, last.at_s - first.at_s)
