"""Our client against a server whose counts, chunk sizes and send times are known."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.loops.common import prompt, tag
from benchmarks.mock import Truth, build, serving
from loadgen.load.closed_loop import run_closed_loop
from loadgen.load.record import Outcome, RequestRecord
from loadgen.load.shape import ClosedLoop, LoadResult
from loadgen.load.target import Target
from loadgen.load.window import tokens_per_event
from loadgen.load.workers.closed_loop import run_workers
from loadgen.load.workers.pool import WorkerPool
from loadgen.workloads.base import Message, Prompt

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="the mock server needs a C compiler")

TOLERANCE_S = 0.003
SHARE = 0.9
ATTEMPTS = 8
"""A busy machine delays single reads; a client that stamps late does so every time."""


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("golden"))


@dataclass(frozen=True)
class Pair:
    """One request as both sides saw it."""

    record: RequestRecord
    truth: Truth


async def measured(
    binary: Path, folder: Path, tokens_per_event_: int, max_tokens: int, processes: int = 1
) -> tuple[LoadResult, list[Pair]]:
    prompts = [
        Prompt(prompt_id=tag(n), max_tokens=max_tokens, messages=(Message("user", prompt(n)),)) for n in range(12)
    ]
    shape = ClosedLoop(4, window_s=60.0, max_window_s=60.0, spread_s=0.02)
    options = ("--first-ms", "20", "--tokens-per-event", str(tokens_per_event_), "--all-times", "--spread")
    with serving(binary, folder / f"log-{tokens_per_event_}", 6.0, None, *options) as server:
        target = Target(server.url, "mock", keep_text=True)
        if processes == 1:
            result = await run_closed_loop(target, prompts, shape)
        else:
            async with WorkerPool(processes) as pool:
                result = await run_workers(pool, target, prompts, shape)
    truths = {one.tag: one for one in server.truths()}
    assert set(truths) == {p.prompt_id for p in prompts} == {r.prompt_id for r in result.records}
    return result, [Pair(record, truths[record.prompt_id]) for record in result.records]


def share_within(errors: Sequence[float]) -> float:
    return sum(abs(error) <= TOLERANCE_S for error in errors) / len(errors)


def check_counts(result: LoadResult, pairs: Sequence[Pair], tokens: int) -> None:
    for record, truth in ((pair.record, pair.truth) for pair in pairs):
        assert record.outcome is Outcome.OK
        assert record.token_source == "server"
        assert record.output_tokens == truth.tokens == tokens
        assert len(record.chunk_times_s) == truth.events
        assert (record.text or "").split() == ["word"] * tokens
        assert sum(tokens_per_event(record)) == pytest.approx(tokens)
        # one clock on one machine: nothing is received before it was sent
        assert record.start_s <= truth.received_s
        assert all(got >= sent for got, sent in zip(record.chunk_times_s, truth.times_s, strict=True))
    assert result.outcomes["ok"] == len(pairs)
    assert sum(pair.record.output_tokens for pair in pairs) == tokens * len(pairs)


@pytest.mark.parametrize(("tokens_each", "tokens"), [(1, 12), (3, 20), (5, 40)])
async def test_counts_are_exact_and_times_within_three_milliseconds(
    binary: Path, tmp_path: Path, tokens_each: int, tokens: int
) -> None:
    best = {"chunk": 0.0, "ttft": 0.0, "e2e": 0.0, "tpot": 0.0}
    for _ in range(ATTEMPTS):
        result, pairs = await measured(binary, tmp_path, tokens_each, tokens)
        check_counts(result, pairs, tokens)
        errors: dict[str, list[float]] = {name: [] for name in best}
        for record, truth in ((pair.record, pair.truth) for pair in pairs):
            errors["chunk"] += [a - b for a, b in zip(record.chunk_times_s, truth.times_s, strict=True)]
            errors["ttft"].append((record.ttft_s or 0.0) - truth.ttft_s)
            errors["e2e"].append((record.e2e_s or 0.0) - (truth.last_s - truth.received_s))
            errors["tpot"].append((record.tpot_s or 0.0) - (truth.last_s - truth.first_s) / (tokens - 1))
        best = {name: max(share, share_within(errors[name])) for name, share in best.items()}
        if min(best.values()) >= SHARE:
            return
    pytest.fail(f"in no attempt were {SHARE:.0%} of the times within {TOLERANCE_S * 1e3:g} ms: {best}")


async def test_two_processes_see_the_same_truth(binary: Path, tmp_path: Path) -> None:
    result, pairs = await measured(binary, tmp_path, 3, 20, processes=2)
    check_counts(result, pairs, 20)
    assert {pair.record.worker for pair in pairs} == {0, 1, 2, 3}
