"""What `loadgen verify` says of claims that are true, tied or false by a known amount."""

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from benchmarks.answer.world import World
from loadgen.analysis.verify import attainable_margin, compare, overall
from loadgen.analysis.verify_model import Role, Verdict
from loadgen.analysis.verify_samples import Sample

LEVELS = (1, 2, 4, 8, 16, 32)
REPEATS = 3
CLAIMS = (
    ("better by 5 % at every load", lambda margin, level: math.log(1.05)),
    ("exactly equal at every load", lambda margin, level: 0.0),
    ("worse by exactly the margin at one load, else equal", lambda margin, level: -math.log1p(margin) * (level == 8)),
    ("worse by three margins at one load, else equal", lambda margin, level: -3 * math.log1p(margin) * (level == 8)),
)


@dataclass(frozen=True)
class VerifyScore:
    """Shares of the three verdicts on one claim."""

    claim: str
    holds: float
    fails: float
    open: float
    margin: float
    """Median."""


def verify_scores(world: World, runs: int) -> list[VerifyScore]:
    """Each claim verified `runs` times at six loads, three repeats, the margin from an earlier sweep's noise."""
    found: list[VerifyScore] = []
    for name, effect in CLAIMS:
        rng = np.random.default_rng(len(found))
        verdicts: Counter[Verdict] = Counter()
        margins = []
        for _ in range(runs):
            margin = _margin(world, rng)
            margins.append(margin)
            samples = [
                Sample(str(level), level, Role.SCHEDULE, Role.NONE, _values(world, rng, level, effect(margin, level)))
                for level in LEVELS
            ]
            verdicts[overall(compare(samples, margin))] += 1
        found.append(
            VerifyScore(
                name,
                verdicts[Verdict.HOLDS] / runs,
                verdicts[Verdict.FAILS] / runs,
                verdicts[Verdict.OPEN] / runs,
                float(np.median(margins)),
            )
        )
    return found


def _margin(world: World, rng: np.random.Generator) -> float:
    earlier = [float(np.std(_values(world, rng, level, 0.0), ddof=1)) for level in LEVELS]
    return attainable_margin([(sd, REPEATS - 1) for sd in earlier], REPEATS, len(LEVELS))


def _values(world: World, rng: np.random.Generator, level: int, effect: float) -> tuple[float, ...]:
    """Repeats whose true ln ratio is `effect`, with the machine's noise at that load."""
    truth = world.curve(level)
    return tuple(value - truth + effect for value in world.draw(rng, level, REPEATS, 0.0))
