"""Scores the answer against known truths, in virtual time: coverage, false findings, seconds saved, fit error, verify.

python -m benchmarks.answer.run                  everything; the banks of cells are kept in .cache/answer-bench
python -m benchmarks.answer.run --runs 200       fewer runs
python -m benchmarks.answer.run --write docs/method.md     puts the tables between the file's marks
"""

import argparse
import multiprocessing
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.answer import table
from benchmarks.answer.bank import EFFORT, SETTLE, Bank, Cells, Machine, make_bank
from benchmarks.answer.costfit import UNSEEN_FORMS, FitError, power_law, simulated, written
from benchmarks.answer.design import Design, carry_out
from benchmarks.answer.full import FullCheck, full_check
from benchmarks.answer.savings import Saving, saving
from benchmarks.answer.score import Score, score
from benchmarks.answer.verify import VerifyScore, verify_scores
from benchmarks.answer.world import World
from benchmarks.answer.worlds import MACHINES, all_worlds, of_machine
from loadgen.simulator.hardware import PRESETS
from loadgen.store.codec import decode, encode

CACHE = Path(".cache") / "answer-bench"
RUNS = 2000
BANK = 24
GRID = Design("fixed grid, 3 repeats", 3, refine=False)
REFINE = Design("--refine", 1, refine=True)
NARROW = Design("--refine --half-width 5%", 1, refine=True, wanted=0.05)
SESSIONS = Design("--refine --sessions 4", 1, refine=True, sessions=4)
FITTED, UNSEEN = (1, 2, 4, 8, 16, 32), (3, 6, 12, 24)


def main() -> None:
    """Runs the bench and prints its tables."""
    parser = argparse.ArgumentParser(description="Scores the answer against known truths, in virtual time.")
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each design in each world")
    parser.add_argument(
        "--full", type=int, default=20, help="runs that simulate every cell, to check the composed ones"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--write", type=Path, help="a Markdown file with marks for the tables")
    parser.add_argument("--fresh", action="store_true", help="simulate the banks of cells again")
    args = parser.parse_args()
    started = time.monotonic()
    banks = [bank_of(machine, fresh=args.fresh) for machine in MACHINES]
    makers: list[Callable[[], str]] = [
        lambda: table.coverage(scores(all_worlds(banks), args.runs, args.jobs)),
        lambda: table.savings(savings(banks, max(args.runs // 10, 50))),
        lambda: table.fits(fits()),
        lambda: table.verify(verify(banks[0], args.runs // 2)),
        lambda: table.full([full(banks[0], args.full)] if args.full else []),
    ]
    parts = []
    for maker in makers:
        parts.append(maker())
        print(f"{parts[-1]}\n", flush=True)
    text = "\n\n".join(part for part in parts if part)
    print(f"\n{time.monotonic() - started:.0f} s", file=sys.stderr)
    if args.write:
        table.write_between_marks(args.write, text)


def bank_of(machine: Machine, *, fresh: bool = False) -> Bank:
    """The machine's bank, simulated once and kept."""
    key = f"{zlib.crc32(repr((machine, BANK, EFFORT, SETTLE, PRESETS[machine.hardware])).encode()):08x}"
    path = CACHE / f"{machine.hardware}-{key}.json"
    if path.exists() and not fresh:
        return decode(path.read_bytes(), Bank)
    print(f"simulating cells: {machine.name} ...", file=sys.stderr, flush=True)
    bank = make_bank(machine, BANK)
    CACHE.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode(bank))
    return bank


def scores(worlds: list[World], runs: int, jobs: int = 1) -> list[Score]:
    """Each world by each design; server starts over several sessions where they differ."""
    tasks = [
        (world, design, runs)
        for world in worlds
        for design in (GRID, REFINE, *([NARROW, SESSIONS] if world.start_sd else []))
    ]
    if jobs == 1:
        return [_score(*task) for task in tasks]
    # Forked workers see the worlds as they are: their curves are closures, which no pickle takes.
    _TASKS.extend(tasks)
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        return pool.map(_score_task, range(len(tasks)), chunksize=1)


_TASKS: list[tuple[World, Design, int]] = []


def _score_task(number: int) -> Score:
    return _score(*_TASKS[number])


def _score(world: World, design: Design, runs: int) -> Score:
    rng = np.random.default_rng(zlib.crc32(f"{world.name}/{design.name}".encode()))
    outcomes = [carry_out(world, design, rng) for _ in range(runs)]
    return score(world, design.name, outcomes, sessions=design.sessions)


def savings(banks: list[Bank], runs: int) -> list[Saving]:
    """Measured seconds of refining against fixed grids, on each machine."""
    return [saving(of_machine(bank), REFINE, runs) for bank in banks]


def full(bank: Bank, runs: int) -> FullCheck:
    """Composed runs beside runs whose every cell was simulated."""
    return full_check(of_machine(bank), Cells(bank.machine), REFINE, runs)


def fits() -> list[FitError]:
    """How far the cost model is off."""
    machines = (MACHINES[0], Machine("h100-8b", "chat", "draft-model", ()))
    return [
        *(simulated(machine.name, Cells(machine), FITTED, UNSEEN, 2) for machine in machines),
        written("a power law with a staircase", power_law, 3.2, 2.2, UNSEEN),
        *(written(f"{name} (never used while building)", form, 3.2, 2.2, UNSEEN) for name, form in UNSEEN_FORMS),
    ]


def verify(bank: Bank, runs: int) -> list[VerifyScore]:
    """What `loadgen verify` says of true, tied and false claims."""
    return verify_scores(of_machine(bank), runs)


if __name__ == "__main__":
    main()
