"""Scores the answer against known truths, in virtual time: coverage, false findings, seconds saved, fit error, verify.

python -m benchmarks.answer.run                  everything; the banks of cells are kept in .cache/answer-bench
python -m benchmarks.answer.run --runs 200       fewer runs
python -m benchmarks.answer.run --write docs/method.md     puts the tables between the file's marks
"""

import argparse
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.answer import table
from benchmarks.answer.bank import EFFORT, SETTLE, STEPPED, Bank, Cells, Machine, make_bank
from benchmarks.answer.costfit import UNSEEN_FORMS, FitError, power_law, simulated, written
from benchmarks.answer.design import Design, carry_out
from benchmarks.answer.full import FullCheck, full_check
from benchmarks.answer.parallel import spread
from benchmarks.answer.parts import parts
from benchmarks.answer.savings import Saving, saving
from benchmarks.answer.score import Score, score
from benchmarks.answer.verify import VerifyScore, verify_scores
from benchmarks.answer.world import World
from benchmarks.answer.worlds import MACHINES, UNSEEN, all_worlds, of_machine
from loadgen.simulator.hardware import PRESETS
from loadgen.store.codec import decode, encode

CACHE = Path(".cache") / "answer-bench"
RUNS = 2000
FULL = 240
BANK = 24
GRID = Design("fixed grid, 3 repeats", 3, refine=False)
REFINE = Design("--refine", 1, refine=True)
NARROW = Design("--refine --half-width 5%", 1, refine=True, wanted=0.05)
SESSIONS = Design("--refine --sessions 4", 1, refine=True, sessions=4)
FITTED, FORETOLD = (1, 2, 4, 8, 16, 32), (3, 6, 12, 24)
UNSEEN_TITLE = "Unseen: machines, prompts and noise that no choice of the method was made by"


def main() -> None:
    """Runs the bench and prints its tables."""
    parser = argparse.ArgumentParser(description="Scores the answer against known truths, in virtual time.")
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each design in each world")
    parser.add_argument("--full", type=int, default=FULL, help="runs of the first machine that simulate every cell")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--write", type=Path, help="a Markdown file with marks for the tables")
    parser.add_argument("--fresh", action="store_true", help="simulate the banks of cells again")
    args = parser.parse_args()
    started = time.monotonic()
    known, runs, jobs = len(MACHINES), args.runs, args.jobs
    banks = banks_of((*MACHINES, *UNSEEN), jobs, fresh=args.fresh)
    worlds, unseen = all_worlds(banks[:known]), [of_machine(bank) for bank in banks[known:]]
    makers: list[Callable[[], str]] = [
        lambda: table.coverage(scores(worlds, runs, jobs)),
        lambda: table.coverage(scores(unseen, runs, jobs), UNSEEN_TITLE),
        lambda: table.parts(readings([*worlds[:known], *unseen], max(runs // 2, 50), jobs)),
        lambda: table.savings(savings([*worlds[:known], *unseen], max(runs // 10, 50), jobs)),
        lambda: table.full(full(banks, args.full, jobs)),
        lambda: table.fits(fits()),
        lambda: table.verify(verify(banks[0], runs // 2)),
    ]
    made = []
    for maker in makers:
        made.append(maker())
        print(f"{made[-1]}\n", flush=True)
        print(f"{time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    if args.write:
        table.write_between_marks(args.write, "\n\n".join(part for part in made if part))


def banks_of(machines: Sequence[Machine], jobs: int, *, fresh: bool = False) -> list[Bank]:
    """The machines' banks."""
    return spread([lambda machine=machine: bank_of(machine, fresh=fresh) for machine in machines], jobs)


def bank_of(machine: Machine, *, fresh: bool = False) -> Bank:
    """The machine's bank, simulated once and kept."""
    key = f"{zlib.crc32(repr((machine, BANK, EFFORT, SETTLE, STEPPED, PRESETS[machine.hardware])).encode()):08x}"
    path = CACHE / f"{machine.hardware}-{key}.json"
    if path.exists() and not fresh:
        return decode(path.read_bytes(), Bank)
    print(f"simulating cells: {machine.name} ...", file=sys.stderr, flush=True)
    bank = make_bank(machine, BANK)
    CACHE.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode(bank))
    return bank


def scores(worlds: Sequence[World], runs: int, jobs: int = 1) -> list[Score]:
    """Each world by each design; server starts over several sessions where they differ."""
    tasks = [
        lambda world=world, design=design: _score(world, design, runs)
        for world in worlds
        for design in (GRID, REFINE, *([NARROW, SESSIONS] if world.start_sd else []))
    ]
    return spread(tasks, jobs)


def _score(world: World, design: Design, runs: int) -> Score:
    rng = np.random.default_rng(zlib.crc32(f"{world.name}/{design.name}".encode()))
    outcomes = [carry_out(world, design, rng) for _ in range(runs)]
    return score(world, design.name, outcomes, sessions=design.sessions)


def readings(worlds: Sequence[World], runs: int, jobs: int) -> list[Score]:
    """The same runs, read with less held possible."""
    found = spread([lambda world=world: parts(world, REFINE, runs) for world in worlds], jobs)
    return [one for several in found for one in several]


def savings(worlds: Sequence[World], runs: int, jobs: int) -> list[Saving]:
    """Measured seconds of refining against fixed grids, on each machine."""
    found = spread([lambda world=world: saving(world, (REFINE, NARROW), runs) for world in worlds], jobs)
    return [one for several in found for one in several]


def full(banks: Sequence[Bank], runs: int, jobs: int) -> list[FullCheck]:
    """Composed runs beside runs whose every cell was simulated: the first machine, and fewer of the second, whose cells
    take longer.
    """
    return [
        full_check(of_machine(bank), Cells(bank.machine), REFINE, count, jobs)
        for bank, count in zip(banks, (runs, runs // 4), strict=False)
        if count
    ]


def fits() -> list[FitError]:
    """How far the cost model is off."""
    machines = (MACHINES[0], Machine("h100-8b", "chat", "draft-model", ()))
    return [
        *(simulated(machine.name, Cells(machine), FITTED, FORETOLD, 2) for machine in machines),
        written("a power law with a staircase", power_law, 3.2, 2.2, FORETOLD),
        *(written(f"{name} (never used while building)", form, 3.2, 2.2, FORETOLD) for name, form in UNSEEN_FORMS),
    ]


def verify(bank: Bank, runs: int) -> list[VerifyScore]:
    """What `loadgen verify` says of true, tied and false claims."""
    return verify_scores(of_machine(bank), runs)


if __name__ == "__main__":
    main()
