"""Writes a large run folder that no server measured: for looking at its report, and for timing how it is built.

Nine levels, six profiles and a baseline, five repeats, a million chunks; python tools/make_large_run.py FOLDER
"""

import math
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from loadgen.load.record import Outcome, RequestRecord
from loadgen.load.shape import ClientHealth
from loadgen.load.summary import distribution
from loadgen.metrics.model import CounterDelta, GaugeSample, GaugeSummary, HistogramDelta
from loadgen.store.folder import RunFolder
from loadgen.store.model import CellKey, CellResult, Condition, Manifest

LEVELS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
PROFILES = ("ngram", "ngram-gpu", "suffix", "eagle", "eagle3", "mtp")
CONDITION = Condition("code-edit", 300, 0.0)
WINDOW_S = 5.0
PROMPT_S = 0.04


@dataclass(frozen=True)
class Size:
    """How much there is of everything."""

    levels: tuple[int, ...] = LEVELS
    profiles: tuple[str, ...] = PROFILES
    repeats: int = 5
    chunks: int = 1_000_000


def write_large_run(path: Path, size: Size | None = None, seed: int = 1) -> int:
    """The number of chunks written; `path` is a new run folder."""
    size = size or Size()
    path.mkdir(parents=True)
    folder, rng = RunFolder(path), random.Random(seed)
    folder.write_manifest(_manifest(path.name, size))
    cells = len(size.levels) * (len(size.profiles) + 1) * size.repeats
    per_cell = size.chunks / cells
    written = clock = 0.0
    for order, key in enumerate(_keys(size)):
        records = list(_records(key, per_cell, clock, rng))
        for record in records:
            folder.append_request(key, record)
            written += len(record.chunk_times_s)
        folder.append_gauges(key, tuple(_gauges(key, clock)))
        folder.append_cell(_cell(key, order, records, rng))
        clock += WINDOW_S + 2.0
    folder.append_event("completed", "made by tools/make_large_run.py")
    folder.close()
    return int(written)


def _keys(size: Size) -> Iterator[CellKey]:
    for repeat in range(size.repeats):
        for level in size.levels:
            for profile in ("baseline", *size.profiles):
                yield CellKey(profile, CONDITION, level, repeat)


def speedup(profile: str, level: int) -> float:
    """What the made-up servers do: every profile turns somewhere."""
    rank = PROFILES.index(profile) if profile in PROFILES else 0
    return 1.0 if profile == "baseline" else (1.8 - 0.12 * rank) * level ** -(0.14 - 0.01 * rank)


def _records(key: CellKey, chunks: float, clock: float, rng: random.Random) -> Iterator[RequestRecord]:
    rounds = max(3, 16 // key.level)
    requests = rounds * key.level
    length = max(2, round(chunks / requests))
    gap = key.level / _rate(key) * (1.0 if key.profile == "baseline" else 2.0)
    whole = PROMPT_S * 1.2 + gap * length
    for number in range(requests):
        worker, turn = number % key.level, number // key.level
        start = clock + whole * (worker / key.level + turn)
        times = [start + PROMPT_S * (1 + 0.2 * rng.random()) + gap * i for i in range(length)]
        yield RequestRecord(
            prompt_id=f"{key.condition.workload}/{key.level}/{key.repeat}/{number}",
            worker=worker,
            outcome=Outcome.OK,
            start_s=start,
            end_s=times[-1],
            first_token_s=times[0],
            last_token_s=times[-1],
            prompt_tokens=300,
            output_tokens=length if key.profile == "baseline" else 2 * length,
            chunk_times_s=tuple(times),
        )


def _rate(key: CellKey) -> float:
    return 200.0 * key.level / (1 + key.level / 40) * speedup(key.profile, key.level)


def _cell(key: CellKey, order: int, records: list[RequestRecord], rng: random.Random) -> CellResult:
    rate = _rate(key) * math.exp(rng.gauss(0, 0.01))
    drafts = key.profile != "baseline"
    tokens = rate * WINDOW_S
    steps = tokens / (2.0 if drafts else 1.0)
    window = CounterDelta(
        duration_s=WINDOW_S,
        generation_tokens=tokens,
        prompt_tokens=300.0 * len(records),
        drafts=steps if drafts else None,
        draft_tokens=4 * steps if drafts else None,
        accepted_tokens=steps if drafts else None,
        accepted_per_position=(0.5 * steps, 0.3 * steps, 0.15 * steps, 0.05 * steps) if drafts else (),
        inter_token_latency=HistogramDelta(steps, WINDOW_S * key.level),
        iteration_tokens=HistogramDelta(steps / key.level, tokens),
        time_to_first_token=HistogramDelta(0.0, 0.0),
    )
    return CellResult(
        key=key,
        order=order,
        started_at="2026-01-01T00:00:00.000Z",
        window_s=WINDOW_S,
        output_tokens_per_s=rate,
        requests_per_s=len(records) / WINDOW_S,
        outcomes={"ok": len(records)},
        ttft_s=distribution(r.ttft_s for r in records),
        tpot_s=distribution(r.tpot_s for r in records),
        e2e_s=distribution(r.e2e_s for r in records),
        chunk_gap_s=distribution(gap for r in records[:4] for gap in r.chunk_gaps_s),
        output_tokens=distribution(r.output_tokens for r in records),
        prompt_tokens=distribution(r.prompt_tokens for r in records),
        client=ClientHealth(0.001, 0.1, float(key.level), 0.0),
        window=window,
        idle=None,
        gauges=GaugeSummary(10, float(key.level), float(key.level), 0.0, 0.0, 0.3, 0.01, 0.02),
        client_tokens_total=round(tokens),
        token_sources={"server": len(records)},
        half_second_tokens=tuple(rate / 2 for _ in range(10)),
        prompts_sha256=f"{key.level}-{key.repeat}",
    )


def _gauges(key: CellKey, clock: float) -> Iterator[GaugeSample]:
    for i in range(10):
        yield GaugeSample(clock + i / 2, float(key.level), 0.0, 0.001 * key.level, 0.01)


def _manifest(name: str, size: Size) -> Manifest:
    return Manifest(
        run_id=name,
        created_at="2026-01-01T00:00:00.000Z",
        loadgen_version="0",
        argv=("tools/make_large_run.py",),
        engine="made up",
        engine_reason="made up: no server measured this",
        simulated=True,
        profiles=("baseline", *size.profiles),
        against="baseline",
        methods={"baseline": "none"} | {name: name.replace("-", "_") for name in size.profiles},
        num_speculative_tokens=dict.fromkeys(size.profiles, 4),
        conditions=(CONDITION,),
        levels=size.levels,
        repeats=size.repeats,
        sessions=1,
        seed=1,
        quick=False,
        order="together",
        sampling={},
        hardware={},
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/make_large_run.py FOLDER")
    print(f"{write_large_run(Path(sys.argv[1])):,} chunks")
