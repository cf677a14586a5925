"""Break-evens that were not run, from the cost that a probe measured (docs/method.md, part 6)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from loadgen.analysis.costmodel import CostModel, between_levels, predicted_break_even
from loadgen.analysis.model import ProfileFinding
from loadgen.analysis.step_points import LevelSteps
from loadgen.analysis.steps import StepGroup

_ROUNDS = 30
"""Of the search for L*, whose steps shrink geometrically."""


def carried(groups: Sequence[StepGroup], factor: float) -> tuple[StepGroup, ...]:
    """The kinds of steps if so many times as many prompts came, each by chance: a step stays without with the old
    chance to the power of the factor, and those that carry share out all prompts.
    """
    before = sum(group.share for group in groups if group.prompts)
    if before <= 0:
        return tuple(groups)
    after = 1.0 - max(0.0, 1.0 - before) ** factor
    fuller = factor * before / after
    return tuple(
        StepGroup(group.share * after / before, group.prompts * fuller, group.prompt_tokens * fuller)
        if group.prompts
        else StepGroup(1.0 - after, 0.0, 0.0)
        for group in groups
    )


class Probe:
    """A profile whose L* was measured: `cost-probe`, or the same K on another workload with the same prompts.

    A step with more tokens accepted ends requests sooner, and so carries more prompts, which no draft makes faster. L*
    of a probe that accepts nothing leaves that out; the fitted step cost, where there is one, puts it in.
    """

    def __init__(self, found: ProfileFinding, steps: Sequence[LevelSteps], model: CostModel | None) -> None:
        self._lengths = {
            level.concurrency: (level.explanation.break_even_tokens_per_step, level.tokens_per_step)
            for level in found.levels
            if level.valid and level.explanation is not None and level.tokens_per_step
        }
        self._steps = {one.level: one for one in steps}
        self._model = model

    @property
    def levels(self) -> tuple[int, ...]:
        """Where L* was measured, ascending."""
        return tuple(sorted(self._lengths))

    def speedup(self, level: int, tokens_per_step: float) -> float:
        """Foretold for so many tokens per step at one of the levels."""
        length, own = self._lengths[level]
        return tokens_per_step / (length * self._longer(level, tokens_per_step / (own or 1.0)))

    def length(self, level: int) -> float:
        """L*: tokens per step at which this level breaks even, the prompts that it then carries included."""
        tokens = self._lengths[level][0]
        for _ in range(_ROUNDS):
            tokens /= self.speedup(level, tokens) ** 0.5
        return tokens

    def speedups(self, tokens_per_step: Mapping[int, float]) -> dict[int, float]:
        """By level, for a profile's tokens per step; levels that either side lacks are left out."""
        return {level: self.speedup(level, tokens_per_step[level]) for level in self.levels if level in tokens_per_step}

    def turn(self, tokens_per_step: float) -> int:
        """The last concurrency up to which so many tokens per step should pay."""
        found = {level: self.speedup(level, tokens_per_step) for level in self.levels}
        return predicted_break_even(between_levels(found), self.levels[-1])

    def _longer(self, level: int, factor: float) -> float:
        steps = self._steps.get(level)
        if self._model is None or steps is None:
            return 1.0
        more = replace(steps.own, groups=carried(steps.own.groups, factor))
        return self._model.step_time_s(more) / self._model.step_time_s(steps.own)
