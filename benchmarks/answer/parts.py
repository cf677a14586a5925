"""What each allowance in the curve's interval costs: the same refined runs, read without it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.answer.design import Design, Outcome, carry_out
from benchmarks.answer.score import Score, score
from benchmarks.answer.world import World
from loadgen.analysis.breakeven import find_break_even
from loadgen.analysis.local_curve import Prior
from loadgen.analysis.refine import LOOKS

NEVER = 1e-12
READINGS = (
    ("as published", Prior()),
    ("no cliff held possible", Prior(jump_chance=NEVER)),
    ("no steps of padded batches either", Prior(ripples=(0.0,), jump_chance=NEVER)),
    ("no bend either: a straight line", Prior(bends=(1e-4,), ripples=(0.0,), jump_chance=NEVER)),
)


def parts(world: World, design: Design, runs: int) -> list[Score]:
    """One score for each reading of the same runs."""
    rng = np.random.default_rng(55)
    outcomes = [carry_out(world, design, rng) for _ in range(runs)]
    return [score(world, name, _read(outcomes, prior)) for name, prior in READINGS]


def _read(outcomes: Sequence[Outcome], prior: Prior) -> list[Outcome]:
    return [replace(one, verdict=find_break_even(one.stats, looks=LOOKS, prior=prior)) for one in outcomes]
