"""What `loadgen verify` says of claims that are true, tied or false by a known amount.

Two error rates are to stay below 5 %: a false "holds" and a false "does not hold" (docs/method.md, part 9). Each has
its least favourable truth among the claims: worse by exactly the margin at one load and far better elsewhere, where no
other load helps to refuse "holds"; worse by exactly the margin at every load beside both servers, where each of the
twelve hypotheses "not worse by more than the margin" is just true, and Holm's step-down has to keep all of them.
"""

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
OTHERS = (Role.NONE, Role.STATIC)
CLAIMS = (
    ("better by 5 % at every load", lambda margin, level: math.log(1.05)),
    ("exactly equal at every load", lambda margin, level: 0.0),
    ("worse by exactly the margin at one load, else equal", lambda margin, level: -math.log1p(margin) * (level == 8)),
    (
        "worse by exactly the margin at one load, else better by 30 %",
        lambda margin, level: -math.log1p(margin) if level == 8 else math.log(1.3),
    ),
    ("worse by exactly the margin at every load", lambda margin, level: -math.log1p(margin)),
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
    """Each claim verified `runs` times at six loads beside two servers, three repeats, the margin from an earlier
    sweep's noise.
    """
    found: list[VerifyScore] = []
    for name, effect in CLAIMS:
        rng = np.random.default_rng(len(found))
        verdicts: Counter[Verdict] = Counter()
        margins = []
        for _ in range(runs):
            margin = _margin(world, rng)
            margins.append(margin)
            samples = [
                Sample(str(level), level, Role.SCHEDULE, other, values)
                for level in LEVELS
                for other, values in zip(OTHERS, _both(world, rng, level, effect(margin, level)), strict=True)
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


def _both(world: World, rng: np.random.Generator, level: int, effect: float) -> tuple[tuple[float, ...], ...]:
    """Beside each of two servers: half of the noise is the claimed server's own, and so the same in both."""
    first = _values(world, rng, level, effect)
    second = _values(world, rng, level, 0.0)
    mixed = tuple(effect + (one - effect + two) / math.sqrt(2) for one, two in zip(first, second, strict=True))
    return first, mixed


def _values(world: World, rng: np.random.Generator, level: int, effect: float) -> tuple[float, ...]:
    """Repeats whose true ln ratio is `effect`, with the machine's noise at that load."""
    truth = world.curve(level)
    return tuple(value - truth + effect for value in world.draw(rng, level, REPEATS, 0.0))
