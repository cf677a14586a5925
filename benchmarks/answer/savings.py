"""Measured seconds of refining against fixed grids of 3 repeats, at the same half-width."""

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.answer.design import Design, carry_out
from benchmarks.answer.world import World
from loadgen.analysis.model import BreakEvenStatus
from loadgen.analysis.refine import half_width

STEPS_PER_OCTAVE = (1, 2, 3, 4, 6, 8, 12)


@dataclass(frozen=True)
class Fixed:
    """A fixed grid, read in the same way as refined runs."""

    levels: int
    half_width: float
    """Median; infinite for runs without a crossing."""
    seconds: float


@dataclass(frozen=True)
class Saving:
    """What refining needs, and what a fixed grid of the same half-width would; None if none up to 12 levels an octave
    is as narrow.
    """

    world: str
    design: str
    half_width: float
    seconds: float
    equal_seconds: float | None
    finest: Fixed


def saving(world: World, designs: Sequence[Design], runs: int) -> list[Saving]:
    """Medians over `runs` runs of each design."""
    grids = []
    for steps in STEPS_PER_OCTAVE:
        count = round(steps * math.log2(world.highest))
        grid = tuple(sorted({round(2 ** (step / steps)) for step in range(count + 1)}))
        grids.append(_fixed(world, Design("grid", 3, refine=False, grid=grid), runs, steps))
    found = []
    for number, design in enumerate(designs):
        one = _fixed(world, design, runs, 100 + number)
        equal = seconds_at(grids, one.half_width)
        found.append(Saving(world.name, design.name, one.half_width, one.seconds, equal, grids[-1]))
    return found


def seconds_at(grids: Sequence[Fixed], wanted: float) -> float | None:
    """Seconds of a grid with just that half-width: ln seconds on the line over ln half-width between the coarsest grid
    that is narrower and the one before; None if none is. Grids are of whole levels, so that the next one that is
    narrow enough is narrower than asked for, and costs more.
    """
    if grids[0].half_width <= wanted:
        return grids[0].seconds
    for wide, narrow in itertools.pairwise(grids):
        if narrow.half_width <= wanted < wide.half_width:
            if math.isinf(wide.half_width):
                return narrow.seconds
            share = math.log(wide.half_width / wanted) / math.log(wide.half_width / narrow.half_width)
            return math.exp((1 - share) * math.log(wide.seconds) + share * math.log(narrow.seconds))
    return None


def _fixed(world: World, design: Design, runs: int, seed: int) -> Fixed:
    rng = np.random.default_rng(1000 + seed)
    outcomes = [carry_out(world, design, rng) for _ in range(runs)]
    widths = [
        max(map(half_width, one.verdict.crossings)) if one.verdict.status is BreakEvenStatus.FOUND else math.inf
        for one in outcomes
    ]
    seconds = statistics.fmean(one.seconds for one in outcomes)
    return Fixed(len(design.grid or world.grid), statistics.median(widths), seconds)
