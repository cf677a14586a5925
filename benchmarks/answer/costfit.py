"""How far the fitted cost of a step is off: on step times that a machine of another functional form gave."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.answer.bank import Cells
from loadgen.analysis.costmodel import CostModel, fit_cost
from loadgen.analysis.stepcost import StepPoint
from loadgen.analysis.steps import by_chance
from loadgen.simulator.virtual import VirtualResult


@dataclass(frozen=True)
class FitError:
    """Relative errors of the speed-ups that a fit foretells at levels it has not seen."""

    generator: str
    levels: tuple[int, ...]
    median: float
    worst: float


@dataclass(frozen=True)
class _Level:
    level: int
    points: tuple[StepPoint, StepPoint]
    tokens_per_step: float
    speedup: float


def simulated(generator: str, cells: Cells, seen: Sequence[int], unseen: Sequence[int], repeats: int) -> FitError:
    """Fitted on `seen` levels' noisy windows; held against longer runs' means at `unseen`.

    The simulator's step has parts that the fit lacks: tokens that the output layer alone pays for, host time that
    async scheduling hides, n-gram drafts of unlike lengths that leave the full graph.
    """
    fitted = [_level(level, [cells.pair(level, number) for number in range(repeats)]) for level in seen]
    tested = [_level(level, [cells.pair(level, 100 + n) for n in range(3 * repeats)]) for level in unseen]
    return _error(generator, fitted, tested)


def written(
    generator: str, step_s: Callable[[float, float], float], drafted: float, tokens: float, unseen: Sequence[int]
) -> FitError:
    """The same for a formula of (batch, verified tokens) without noise."""
    levels = [_formula(level, step_s, drafted, tokens) for level in (1, 2, 4, 8, 16, 32)]
    return _error(generator, levels, [_formula(level, step_s, drafted, tokens) for level in unseen])


def power_law(batch: float, verified: float) -> float:
    """Seconds: a power law with a staircase of graph sizes (multiples of 8), as no roofline has it."""
    padded = 8 * math.ceil(verified / 8)
    return float(4e-3 + 2.2e-4 * padded**0.85 + 3e-5 * batch)


def tiles(batch: float, verified: float) -> float:
    """Seconds: whole tiles of 64 tokens, hidden behind the weights as long as these take longer."""
    return 2e-3 + max(3.5e-3, 1.1e-3 * math.ceil(verified / 64)) + 6e-5 * math.sqrt(batch)


def experts(batch: float, verified: float) -> float:
    """Seconds: each token reads another one of sixteen experts, so that the weights read grow with the tokens."""
    return float(3e-3 + 8e-3 * (1 - (15 / 16) ** verified) + 2e-5 * verified + 4e-5 * batch)


def logarithm(batch: float, verified: float) -> float:
    """Seconds: a logarithm, steep at first, which no part of the fit is."""
    return 5e-3 * (1 + 0.25 * math.log1p(verified / 8)) + 1e-5 * batch


def cpu_like(batch: float, verified: float) -> float:
    """Seconds: computing from the first token on, and a cache that 24 tokens overflow."""
    return 6e-3 + 7e-4 * verified + 2e-4 * max(0.0, verified - 24) + 3e-4 * batch


def square(batch: float, verified: float) -> float:
    """Seconds: growing with the square of the tokens."""
    return 6e-3 + 4e-7 * verified**2 + 2e-5 * batch


UNSEEN_FORMS: tuple[tuple[str, Callable[[float, float], float]], ...] = (
    ("tiles of 64 tokens", tiles),
    ("experts that are read as tokens come", experts),
    ("a logarithm", logarithm),
    ("linear with a cache that overflows", cpu_like),
    ("a square", square),
)
"""Generators that were written after the fit's form was fixed; it was not changed after they were tried."""


def _level(level: int, pairs: Sequence[tuple[VirtualResult, VirtualResult]]) -> _Level:
    plain, fast = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    steps = sum(run.request_steps for run in fast)
    tokens = sum(run.tokens - run.chunks + run.request_steps for run in fast) / steps
    ratios = [math.log(own.tokens_per_s / base.tokens_per_s) for base, own in pairs]
    points = (_point(plain, speculates=False), _point(fast, speculates=True))
    return _Level(level, points, tokens, math.exp(statistics.fmean(ratios)))


def _point(runs: Sequence[VirtualResult], *, speculates: bool) -> StepPoint:
    steps, requests = sum(run.steps for run in runs), sum(run.request_steps for run in runs)
    drafted = sum(run.draft_tokens for run in runs) / requests
    prompts = sum(run.prompt_tokens - run.cached_tokens for run in runs)
    kinds = by_chance(steps, sum(run.chunks - run.request_steps for run in runs), prompts)
    return StepPoint(requests / steps, drafted, sum(run.window_s for run in runs) / steps, speculates, kinds)


def _formula(level: int, step_s: Callable[[float, float], float], drafted: float, tokens: float) -> _Level:
    plain, fast = step_s(level, level), 4e-4 + step_s(level, level * (1 + drafted))
    points = (StepPoint(level, 0.0, plain, speculates=False), StepPoint(level, drafted, fast, speculates=True))
    return _Level(level, points, tokens, tokens * plain / fast)


def _error(generator: str, fitted: Sequence[_Level], tested: Sequence[_Level]) -> FitError:
    model = fit_cost([point for level in fitted for point in level.points])
    if model is None:
        raise ValueError("too few step times for a fit")
    errors = [abs(_foretold(model, level) / level.speedup - 1) for level in tested]
    return FitError(generator, tuple(level.level for level in tested), statistics.median(errors), max(errors))


def _foretold(model: CostModel, level: _Level) -> float:
    plain, fast = level.points
    return level.tokens_per_step * fast.batch / plain.batch * model.step_time_s(plain) / model.step_time_s(fast)
