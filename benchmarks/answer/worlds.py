"""The worlds that the bench runs in: simulated machines, and curves that are hard to read."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from benchmarks.answer.bank import Bank, Machine
from benchmarks.answer.world import World, residuals_of, smooth

MACHINES = (
    Machine("rtx5090-8b-int4", "code-edit", "ngram", (1, 2, 4, 6, 8, 10, 12, 16, 24, 32, 64)),
    Machine("l4-8b-int4", "code-edit", "ngram", (1, 2, 4, 8, 16, 24, 32, 48, 64)),
    Machine("h200-8b", "chat", "eagle3", (1, 4, 16, 32, 64, 96, 128)),
)
UNSEEN = (
    Machine("h100-8b", "chat", "draft-model", (1, 4, 16, 32, 64, 96, 128), seed=11),
    Machine("rtx4090-8b-int4", "rag-quote", "ngram", (1, 2, 4, 6, 8, 12, 16, 24, 32, 64), seed=12),
    Machine("rtx5090-8b-int4", "chat", "mtp", (1, 2, 4, 8, 12, 16, 24, 32, 64), seed=13),
    Machine("rtx5090-8b-int4", "code-edit", "ngram", (1, 2, 4, 6, 8, 10, 12, 16, 24, 32, 64), seed=14),
)
"""Machines, prompts and noise that no choice of the method was made by: it was frozen before they ran (b9ae31c)."""
START_SD = 0.01
"""As the simulator's default: each server start is 1 % faster or slower."""
SLOW_SHARE = 0.1
GRID = (1, 2, 4, 8, 16, 32)
LOW = (1, 2, 4, 8)


def of_machine(bank: Bank) -> World:
    """The machine itself, with the simulator's start effects; a sweep starts with powers of two below the top."""
    top = max(bank.machine.levels)
    grid = tuple(2**power for power in range(int(math.log2(top))))
    name = bank.machine.name + (f", seed {bank.machine.seed}" if bank.machine.seed else "")
    return World(name, smooth(bank.truth), residuals_of(bank), bank.seconds, grid, top, START_SD)


def all_worlds(banks: Sequence[Bank]) -> list[World]:
    """Each machine, the first one on a bad day, and made curves with the first one's noise."""
    machines = [of_machine(bank) for bank in banks]
    first = machines[0]
    made = [
        replace(first, name=name, curve=curve, grid=grid, highest=grid[-1] if fixed else first.highest, start_sd=0.0)
        for name, curve, grid, fixed in MADE
    ]
    slow = replace(first, name=f"{first.name}, a tenth of the time slow", slow_share=SLOW_SHARE)
    return [*machines, slow, *made]


def _cliff(level: int) -> float:
    return math.log(1.10) if level <= 21 else math.log(0.63)


def _comes_back(level: int) -> float:
    return 0.2 * math.cos(math.pi * math.log2(level) / 2.5)


def _knee(level: int) -> float:
    return 0.25 - 0.05 * math.log2(level) - 0.5 * max(0.0, math.log2(level / 9))


def _straight(level: int) -> float:
    return -0.2 * math.log2(level / 13.3)


def _nothing(level: int) -> float:
    return -1e-9


def _draw_then_loss(level: int) -> float:
    return -1e-9 if level < 16 else math.log(0.8)


def _gain_then_draw(level: int) -> float:
    return max(0.3 - 0.1 * math.log2(level), 1e-9)


MADE: tuple[tuple[str, Callable[[int], float], tuple[int, ...], bool], ...] = (
    ("a cliff, 1.10 to 0.63, between 21 and 22", _cliff, GRID, False),
    ("falls, rises and falls again", _comes_back, GRID, True),
    ("a knee at 9", _knee, GRID, False),
    ("a straight line", _straight, GRID, False),
    ("no crossing: 1.0 at all levels", _nothing, GRID, True),
    ("no crossing: 1.0, then 0.8 from 16 on", _draw_then_loss, GRID, True),
    ("no crossing: 1.35 falling to 1.0", _gain_then_draw, GRID, True),
)
