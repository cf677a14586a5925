"""Measured seconds of refining against a fixed grid of 3 repeats that reaches the same half-width."""

import math
import statistics
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
    """What refining needs, and the coarsest fixed grid that is as narrow; None if none up to 12 levels an octave is."""

    world: str
    half_width: float
    seconds: float
    equal: Fixed | None
    finest: Fixed


def saving(world: World, design: Design, runs: int) -> Saving:
    """Medians over `runs` runs of each design."""
    refined = _fixed(world, design, runs, 0)
    grids = []
    for steps in STEPS_PER_OCTAVE:
        count = round(steps * math.log2(world.highest))
        grid = tuple(sorted({round(2 ** (step / steps)) for step in range(count + 1)}))
        grids.append(_fixed(world, Design("grid", 3, refine=False, grid=grid), runs, steps))
    equal = next((grid for grid in grids if grid.half_width <= refined.half_width), None)
    return Saving(world.name, refined.half_width, refined.seconds, equal, grids[-1])


def _fixed(world: World, design: Design, runs: int, seed: int) -> Fixed:
    rng = np.random.default_rng(1000 + seed)
    outcomes = [carry_out(world, design, rng) for _ in range(runs)]
    widths = [
        max(map(half_width, one.verdict.crossings)) if one.verdict.status is BreakEvenStatus.FOUND else math.inf
        for one in outcomes
    ]
    seconds = statistics.fmean(one.seconds for one in outcomes)
    return Fixed(len(design.grid or world.grid), statistics.median(widths), seconds)
