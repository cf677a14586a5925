"""A check of composed runs: the same design with every cell simulated anew, prompts and noise its own."""

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.answer.bank import Cells
from benchmarks.answer.design import Design, carry_out
from benchmarks.answer.score import Score, score
from benchmarks.answer.world import World


@dataclass(frozen=True)
class FullCheck:
    """Scores of the same design, composed and fully simulated, without start effects."""

    composed: Score
    simulated: Score


@dataclass(frozen=True)
class SimulatedWorld(World):
    """A world whose every draw is a pair of cells simulated for it."""

    cells: Cells | None = None

    def draw(self, rng: np.random.Generator, level: int, count: int, shift: float) -> list[float]:
        """`count` fresh pairs of virtual cells."""
        if self.cells is None:
            raise ValueError("a simulated world needs its cells")
        numbers = rng.integers(1000, 10_000_000, count)
        return [self.cells.ln_ratio(level, int(number)) + shift for number in numbers]


def full_check(world: World, cells: Cells, design: Design, runs: int) -> FullCheck:
    """`runs` runs of either kind."""
    plain = replace(world, start_sd=0.0)
    fields = {name: getattr(plain, name) for name in World.__dataclass_fields__ if not name.startswith("_")}
    lived = SimulatedWorld(**fields, cells=cells)
    rng = np.random.default_rng(77)
    composed = [carry_out(plain, design, rng) for _ in range(10 * runs)]
    simulated = [carry_out(lived, design, rng) for _ in range(runs)]
    return FullCheck(score(plain, "composed", composed), score(lived, "fully simulated", simulated))
