"""A check of composed runs: the same design with every cell simulated anew, prompts and noise its own."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.answer.bank import Cells
from benchmarks.answer.design import Design, Outcome, carry_out
from benchmarks.answer.parallel import spread
from benchmarks.answer.score import Score, score
from benchmarks.answer.world import World

CHUNK = 10


@dataclass(frozen=True)
class FullScore:
    """A score, and how far off the crossings are on average: mean ln(crossing / true one) and its standard error."""

    score: Score
    bias: float
    bias_error: float


@dataclass(frozen=True)
class FullCheck:
    """Scores of the same design, composed and fully simulated, without start effects."""

    composed: FullScore
    simulated: FullScore


@dataclass(frozen=True)
class SimulatedWorld(World):
    """A world whose every draw is a pair of cells simulated for it."""

    cells: Cells | None = None

    def draw(self, rng: np.random.Generator, level: int, count: int, shift: float) -> list[float]:
        """`count` fresh pairs of virtual cells."""
        if self.cells is None:
            raise ValueError("a simulated world needs its cells")
        numbers = rng.integers(1000, 1_000_000_000, count)
        return [self.cells.ln_ratio(level, int(number)) + shift for number in numbers]


def full_check(world: World, cells: Cells, design: Design, runs: int, jobs: int = 1) -> FullCheck:
    """`runs` runs whose every cell is simulated, and ten times as many composed ones."""
    plain = replace(world, start_sd=0.0)
    fields = {name: getattr(plain, name) for name in World.__dataclass_fields__ if not name.startswith("_")}
    lived = SimulatedWorld(**fields, cells=cells)
    rng = np.random.default_rng(77)
    composed = [carry_out(plain, design, rng) for _ in range(10 * runs)]
    seeds = np.random.SeedSequence(78).spawn(math.ceil(runs / CHUNK))
    chunks = spread([lambda seed=seed: _runs(lived, design, seed) for seed in seeds], jobs)
    simulated = [outcome for chunk in chunks for outcome in chunk][:runs]
    return FullCheck(_score(plain, "composed", composed), _score(plain, "fully simulated", simulated))


def _runs(world: World, design: Design, seed: np.random.SeedSequence) -> list[Outcome]:
    rng = np.random.default_rng(seed)
    return [carry_out(world, design, rng) for _ in range(CHUNK)]


def _score(world: World, design: str, outcomes: Sequence[Outcome]) -> FullScore:
    turns = [place for place, _ in world.crossings()]
    off = [
        min((math.log(one.exact / turn) for turn in turns), key=abs)
        for outcome in outcomes
        for one in outcome.verdict.crossings
        if one.exact is not None
    ]
    return FullScore(score(world, design, outcomes), statistics.fmean(off), statistics.stdev(off) / math.sqrt(len(off)))
