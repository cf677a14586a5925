"""One run of a sweep in a world: which repeats it takes, and what the analysis says."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.answer.world import World
from loadgen.analysis.breakeven import find_break_even
from loadgen.analysis.model import BreakEven
from loadgen.analysis.ratios import mean_and_sd
from loadgen.analysis.refine import HALF_WIDTH, LOOKS, propose
from loadgen.analysis.shifts import common_shifts
from loadgen.analysis.signs import LevelStat

Data = dict[int, list[float]]


@dataclass(frozen=True)
class Outcome:
    """A run's verdict, its measured seconds (both servers' windows), and the starts' common shift."""

    verdict: BreakEven
    seconds: float
    shift: float
    looks: int
    stats: tuple[LevelStat, ...] = ()
    """What the verdict was read from (of one session)."""


@dataclass(frozen=True)
class Design:
    """How a sweep is run."""

    name: str
    repeats: int
    refine: bool
    grid: tuple[int, ...] | None = None
    """None: the world's own."""
    sessions: int = 1
    wanted: float = HALF_WIDTH


def carry_out(world: World, design: Design, rng: np.random.Generator) -> Outcome:
    """One run. Later sessions measure the cells that the first one chose, as `loadgen sweep --refine` does."""
    shift = world.shift(rng)
    data: Data = {level: world.draw(rng, level, design.repeats, shift) for level in design.grid or world.grid}
    looks = LOOKS if design.refine else 1
    verdict = find_break_even(_stats(data), looks=looks)
    taken = 1
    while design.refine and taken < looks:
        more = propose(verdict, _stats(data), highest=world.highest, wanted=design.wanted)
        if not more:
            break
        for level, repeats in more.repeats.items():
            have = data.setdefault(level, [])
            have += world.draw(rng, level, repeats - len(have), shift)
        taken += 1
        verdict = find_break_even(_stats(data), looks=looks)
    if design.sessions > 1:
        verdict = _over_sessions(world, design, rng, data, shift, looks)
    seconds = math.fsum(len(values) * world.pair_seconds(level) for level, values in data.items())
    return Outcome(verdict, design.sessions * seconds, shift, taken, tuple(_stats(data)))


def _over_sessions(
    world: World, design: Design, rng: np.random.Generator, first: Data, shift: float, looks: int
) -> BreakEven:
    sessions = [first]
    for _ in range(design.sessions - 1):
        own = world.shift(rng)
        sessions.append({level: world.draw(rng, level, len(values), own) for level, values in first.items()})
    means: dict[int, Mapping[int, float]] = {
        level: {number: math.fsum(data[level]) / len(data[level]) for number, data in enumerate(sessions)}
        for level in first
    }
    stats = _stats({level: list(values.values()) for level, values in means.items()})
    return find_break_even(stats, looks=looks, shifts=common_shifts(means.values()))


def _stats(data: Mapping[int, Sequence[float]]) -> list[LevelStat]:
    found = []
    for level, values in sorted(data.items()):
        mean, sd = mean_and_sd(values)
        found.append(LevelStat(level, mean, len(values), sd))
    return found
