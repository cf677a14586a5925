"""The diagnostic cell: its facts, its place in a sweep, and that the cells that decide never ask for it."""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from loadgen.load.record import Outcome, RequestRecord
from loadgen.load.shape import ClientHealth, LoadResult
from loadgen.load.summary import Distribution
from loadgen.load.target import Target
from loadgen.metrics.model import GaugeSummary
from loadgen.metrics.scrape import MetricsClient
from loadgen.profiles.loader import load_profile
from loadgen.simulator.launch import LaunchOptions, launch
from loadgen.simulator.server import SimulatorServer
from loadgen.store.diagnostic import REPEAT, append_diagnostic, diagnostics
from loadgen.store.folder import create_run
from loadgen.store.model import CellKey, CellResult, Condition
from loadgen.sweep.cell import CellMeasurer, CellServer
from loadgen.sweep.diagnose import DiagnosticProbe, diagnostic_cell, middle_level
from loadgen.sweep.events import Notice, SweepEvent
from loadgen.sweep.interrupt import InterruptedRunError
from loadgen.sweep.plan import CellShape, Stage, SweepPlan
from loadgen.workloads.lengths import ratio_counter
from loadgen.workloads.registry import get_workload

CODE = Condition("code-edit", 200, 0.0)
SHAPE = CellShape(window_s=0.3, window_requests=0.0)
PLAN = SweepPlan(("baseline", "ngram"), (CODE,), (1, 2, 4), 1, 7, "together", shape=SHAPE, max_tokens=12)
KEY = CellKey("ngram", CODE, 2, REPEAT)
FULL = Distribution(20, 0.2, 0.2, 0.2, 0.2, 0.2)


def record(times: tuple[float, ...], tokens: tuple[int, ...] | None, **changes: Any) -> RequestRecord:
    made = RequestRecord(
        prompt_id="p",
        worker=0,
        outcome=Outcome.OK,
        start_s=times[0] - 0.1,
        end_s=times[-1],
        first_token_s=times[0],
        last_token_s=times[-1],
        output_tokens=sum(tokens or (1,) * len(times)),
        chunk_times_s=times,
        chunk_tokens=tokens,
    )
    return replace(made, **changes)


def load_of(*records: RequestRecord) -> LoadResult:
    return LoadResult(
        records=records,
        window_open_s=1.0,
        window_close_s=2.0,
        output_tokens_in_window=40.0,
        requests_ended_in_window=3,
        health=ClientHealth(0.001, 0.1, 2.0, 0.0),
    )


def verdict_cell(key: CellKey) -> CellResult:
    return CellResult(
        key=key,
        order=0,
        started_at="",
        window_s=0.3,
        output_tokens_per_s=100.0,
        requests_per_s=10.0,
        outcomes={"ok": 20},
        ttft_s=FULL,
        tpot_s=FULL,
        e2e_s=FULL,
        chunk_gap_s=FULL,
        output_tokens=FULL,
        prompt_tokens=FULL,
        client=ClientHealth(0.001, 0.1, 2.0, 0.0),
        window=None,
        idle=None,
        gauges=GaugeSummary(5, 2.0, 2.0, 0.0, 0.0, 0.3, 0.01, 0.02),
        client_tokens_total=100,
    )


@pytest.fixture
def made(tmp_path: Path) -> Iterator[CellMeasurer]:
    with contextlib.closing(create_run("diagnose", tmp_path)) as folder:
        measurer = CellMeasurer(PLAN, folder, {"code-edit": get_workload("code-edit")}, asyncio.Event())
        measurer.count_tokens = {"code-edit": ratio_counter(4.0)}
        yield measurer


async def serve(name: str) -> tuple[SimulatorServer, CellServer]:
    parts = launch(load_profile(name, Path("server_profiles")), LaunchOptions(noise="off"))
    server = SimulatorServer(parts.core, parts.times, parts.answers, parts.spec, None)
    url = f"http://127.0.0.1:{await server.start('127.0.0.1', 0)}"
    return server, CellServer(Target(url, parts.spec.model_id), MetricsClient(url), 0)


@dataclass
class Watched:
    """A run_load that notes what it was asked for and leaves the work to the real one."""

    real: Any
    targets: list[Target] = field(default_factory=list)

    async def __call__(self, target: Target, *args: Any, **options: Any) -> LoadResult:
        self.targets.append(target)
        result: LoadResult = await self.real(target, *args, **options)
        return result


@pytest.mark.parametrize(("levels", "middle"), [((1,), 1), ((1, 4, 16), 4), ((32, 1, 2, 4, 8, 16), 8)])
def test_the_level_in_the_middle(levels: tuple[int, ...], middle: int) -> None:
    assert middle_level(levels) == middle


def test_chunks_count_where_they_arrive_and_requests_where_they_end() -> None:
    whole = record((1.1, 1.2, 1.3), (1, 5, 5))
    begun_before = record((0.9, 1.5), (1, 2))
    ends_after = record((1.9, 2.1), (1, 4))
    failed = record((1.4, 1.5), (3, 3), outcome=Outcome.TIMEOUT)
    untold = record((1.2, 1.6), None)
    found = diagnostic_cell(KEY, load_of(whole, begun_before, ends_after, failed, untold), "then")
    assert found.chunks_by_tokens == ((1, 2), (2, 1), (5, 2))
    assert found.tokens_per_chunk.n == 5
    assert found.tokens_per_chunk.mean == pytest.approx(14 / 5)
    assert (found.requests, found.uncounted) == (3, 1)
    assert found.acceptance_rate.n == 0


def test_acceptance_by_prompt_leaves_out_prompts_without_a_draft() -> None:
    told = [
        {"draft_acceptance_rate": 0.5, "mean_acceptance_length": 3.0, "num_spec_steps": 10.0},
        {"draft_acceptance_rate": 0.3, "mean_acceptance_length": 2.0, "num_spec_steps": 10.0},
        {"draft_acceptance_rate": 0.0, "mean_acceptance_length": 1.0, "num_spec_steps": 0.0},
    ]
    found = diagnostic_cell(KEY, load_of(*(record((1.1, 1.2), (1, 1), spec_decode=one) for one in told)), "then")
    assert found.acceptance_rate.n == 2
    assert found.acceptance_rate.mean == pytest.approx(0.4)
    assert found.acceptance_length.mean == pytest.approx(2.5)


def test_a_line_comes_back_and_the_first_of_two_counts(tmp_path: Path) -> None:
    first = diagnostic_cell(KEY, load_of(record((1.1, 1.2), (1, 4))), "then")
    append_diagnostic(tmp_path, first)
    append_diagnostic(tmp_path, replace(first, started_at="later"))
    assert diagnostics(tmp_path) == (first,)


async def test_only_the_diagnosis_asks_for_usage_in_every_chunk(made: CellMeasurer) -> None:
    watched = Watched(made.run_load)
    made.run_load = watched
    served = {name: await serve(name) for name in PLAN.profiles}
    up = {name: server for name, (_, server) in served.items()}
    heard: list[SweepEvent] = []
    for order, name in enumerate(PLAN.profiles):
        await made.measure(CellKey(name, CODE, 2, 0), order, up[name], lambda load: None)
    verdicts = len(watched.targets)
    for _ in range(2):  # The second time everything stands.
        await DiagnosticProbe(made)(Stage(0, PLAN.profiles, ()), up, heard.append)
    for server, cell_server in served.values():
        await cell_server.metrics.close()
        await server.stop()

    assert verdicts == 2
    assert [target.continuous_usage for target in watched.targets] == [False, False, True, True]
    stored = [one.record for one in made.folder.requests()]
    assert stored
    # What a final usage cannot tell: had a chunk carried one, its tokens would stand here.
    assert all(one.chunk_tokens is None for one in stored if len(one.chunk_times_s) > 1)
    baseline, ngram = diagnostics(made.folder.path)
    assert (baseline.key, ngram.key) == (replace(KEY, profile="baseline"), KEY)
    assert baseline.chunks_by_tokens[0][0] == 1
    assert baseline.tokens_per_chunk.mean is not None
    assert ngram.tokens_per_chunk.mean is not None
    assert ngram.tokens_per_chunk.mean > baseline.tokens_per_chunk.mean
    assert baseline.uncounted == ngram.uncounted == 0
    assert sum(isinstance(event, Notice) for event in heard) == 2
    # Verdicts are made from cells.jsonl, where no diagnosis stands.
    assert {cell.key.repeat for cell in made.folder.cells()} == {0}


def up_of(server: CellServer) -> Mapping[str, CellServer]:
    return {"ngram": server}


async def test_later_sessions_and_levels_without_a_cell_are_not_diagnosed(made: CellMeasurer) -> None:
    # No server is there: a request would fail.
    nobody = CellServer(Target("http://127.0.0.1:9", "m"), MetricsClient("http://127.0.0.1:9"), 0)
    heard: list[SweepEvent] = []
    await DiagnosticProbe(made)(Stage(0, ("ngram",), ()), up_of(nobody), heard.append)
    made.folder.append_cell(verdict_cell(replace(KEY, repeat=0)))
    await DiagnosticProbe(made)(Stage(1, ("ngram",), ()), up_of(nobody), heard.append)
    await nobody.metrics.close()
    assert heard == []
    assert diagnostics(made.folder.path) == ()


async def test_a_failed_diagnosis_is_told_and_ends_nothing(made: CellMeasurer) -> None:
    made.folder.append_cell(verdict_cell(replace(KEY, repeat=0)))

    async def refused(*args: Any, **options: Any) -> LoadResult:
        return load_of(record((1.1,), None, outcome=Outcome.INVALID_REQUEST, error="unknown stream option"))

    made.run_load = refused
    served, server = await serve("ngram")
    heard: list[SweepEvent] = []
    await DiagnosticProbe(made)(Stage(0, ("ngram",), ()), up_of(server), heard.append)
    await server.metrics.close()
    await served.stop()
    assert "unknown stream option" in str(heard[-1])
    assert [event.kind for event in made.folder.events()] == ["diagnosis-failed"]
    assert diagnostics(made.folder.path) == ()


async def test_ctrl_c_leaves_no_half_diagnosis(made: CellMeasurer) -> None:
    made.folder.append_cell(verdict_cell(replace(KEY, repeat=0)))
    served, server = await serve("ngram")
    made.cancel.set()
    with pytest.raises(InterruptedRunError):
        await DiagnosticProbe(made)(Stage(0, ("ngram",), ()), up_of(server), lambda event: None)
    await server.metrics.close()
    await served.stop()
    assert diagnostics(made.folder.path) == ()
