"""Why it turns: an exact split of each log speed-up, and the regime the server is in (docs/method.md, part 5)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadgen.analysis.acceptance import first_tokens, pool, step_time_s
from loadgen.analysis.model import Explanation, LevelFinding
from loadgen.analysis.pairs import Pair
from loadgen.metrics.model import CounterDelta

MEMORY_BOUND_BELOW = 0.2
COMPUTE_BOUND_ABOVE = 0.7
"""Elasticity of the baseline's step time in its batch: 0 = a step costs the same whatever its size (weights are read
once), 1 = twice the batch takes twice the time. From the baseline in reference/h200.md: 0.02 between 1 and 2 requests,
0.25 between 32 and 64, 0.46 between 64 and 128."""


@dataclass(frozen=True)
class _Side:
    """One profile's pooled windows at one level, in the factors of its token rate."""

    steps_per_s: float
    batch: float
    tokens_per_step: float
    first_factor: float
    accepted_per_draft: float

    @property
    def tokens_per_s(self) -> float:
        return self.steps_per_s * self.batch * self.tokens_per_step * self.first_factor


@dataclass(frozen=True)
class _Level:
    concurrency: int
    own: _Side
    base: _Side
    log_speedup: float

    @property
    def step_time_ratio(self) -> float:
        return self.base.steps_per_s / self.own.steps_per_s


def explain(levels: Sequence[tuple[LevelFinding, Sequence[Pair]]]) -> tuple[LevelFinding, ...]:
    """The findings with their explanations, from each level's valid pairs; None where the counters do not suffice.

    tokens/s = steps/s × batch × tokens per step × (all tokens / decoded tokens) holds for either server by definition,
    so the ln ratios of the four factors add up to the server's ln speed-up; the residual is the client's rest.
    """
    known = {finding.concurrency: _level(finding.concurrency, pairs) for finding, pairs in levels}
    usable = sorted((level for level in known.values() if level is not None), key=lambda level: level.concurrency)
    explained = {level.concurrency: _explanation(level, usable) for level in usable}
    return tuple(replace(finding, explanation=explained.get(finding.concurrency)) for finding, _ in levels)


def _level(concurrency: int, pairs: Sequence[Pair]) -> _Level | None:
    whole = [
        pair
        for pair in pairs
        if pair.baseline.window and pair.profile.window and pair.profile.window_s > 0 and pair.baseline.window_s > 0
    ]
    own = _side(pool(pair.profile.window for pair in whole))
    base = _side(pool(pair.baseline.window for pair in whole))
    ours = math.fsum(pair.profile.output_tokens_per_s * pair.profile.window_s for pair in whole)
    theirs = math.fsum(pair.baseline.output_tokens_per_s * pair.baseline.window_s for pair in whole)
    if own is None or base is None or ours <= 0 or theirs <= 0:
        return None
    ours /= math.fsum(pair.profile.window_s for pair in whole)
    theirs /= math.fsum(pair.baseline.window_s for pair in whole)
    return _Level(concurrency, own, base, math.log(ours / theirs))


def _side(delta: CounterDelta | None) -> _Side | None:
    step, batch = step_time_s(delta), delta.decode_batch if delta else None
    per_step = delta.tokens_per_step if delta else None
    if delta is None or not step or not batch or not per_step or per_step <= 0 or not delta.generation_tokens:
        return None
    decoded = delta.generation_tokens - first_tokens(delta)
    length = delta.mean_acceptance_length
    return _Side(1 / step, batch, per_step, delta.generation_tokens / decoded, length - 1 if length else 0.0)


def _explanation(level: _Level, levels: Sequence[_Level]) -> Explanation:
    own, base = level.own, level.base
    acceptance = math.log1p(own.accepted_per_draft) - math.log1p(base.accepted_per_draft)
    per_step = math.log(own.tokens_per_step / base.tokens_per_step)
    naive = own.tokens_per_step / base.tokens_per_step / levels[0].step_time_ratio
    regime = _regime(level, levels)
    return Explanation(
        log_speedup=level.log_speedup,
        acceptance=acceptance,
        coverage=per_step - acceptance,
        step_rate=math.log(own.steps_per_s / base.steps_per_s),
        batch=math.log(own.batch / base.batch),
        first_tokens=math.log(own.first_factor / base.first_factor),
        residual=level.log_speedup - math.log(own.tokens_per_s / base.tokens_per_s),
        step_time_s=1 / own.steps_per_s,
        baseline_step_time_s=1 / base.steps_per_s,
        break_even_tokens_per_step=own.tokens_per_step / math.exp(level.log_speedup),
        naive_speedup=naive,
        regime=regime,
        sentence=_sentence(level, regime, naive),
    )


def _regime(level: _Level, levels: Sequence[_Level]) -> str:
    """By how the baseline's step time grows with its batch, between this level and its neighbours."""
    at = levels.index(level)
    low, high = levels[max(0, at - 1)], levels[min(len(levels) - 1, at + 1)]
    growth = math.log(high.base.batch / low.base.batch)
    if growth <= 0:
        return "unknown"
    elasticity = math.log(low.base.steps_per_s / high.base.steps_per_s) / growth
    if elasticity < MEMORY_BOUND_BELOW:
        return "memory-bound"
    return "compute-bound" if elasticity > COMPUTE_BOUND_ABOVE else "between"


def _sentence(level: _Level, regime: str, naive: float) -> str:
    gain = math.exp(level.log_speedup)
    where = "" if regime == "unknown" else f" ({regime})"
    text = (
        f"At {level.concurrency}{where} a step gives {level.own.tokens_per_step:.2f} tokens and takes "
        f"{level.step_time_ratio:.2f}x as long: {gain:.2f}x in all"
    )
    if naive / gain > 1.1:
        text += f"; low load's step cost would promise {naive:.2f}x, for it leaves out that verifying is no longer free"
    return text + "."
