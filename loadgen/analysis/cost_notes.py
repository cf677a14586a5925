"""What the fitted step cost and a cost probe say of break-evens, in sentences, each beside what was measured."""

import math
from collections.abc import Sequence

from loadgen.analysis.answer import candidate, label
from loadgen.analysis.costmodel import (
    CostModel,
    between_levels,
    fit_cost,
    predict_speedups,
    predicted_break_even,
    step_points,
)
from loadgen.analysis.model import BreakEvenStatus, ConditionFinding, LevelFinding, ProfileFinding

STEADY_COVERAGE = 0.9
"""A method that drafts in nearly every step: only then does a probe's cost stand for it."""
WORST_FIT = 0.05
"""A fit that misses the measured step times by more foretells nothing (the goal of issue 4 is 5 % on speed-ups)."""


def cost_notes(conditions: Sequence[ConditionFinding]) -> tuple[str, ...]:
    """One sentence per profile and condition whose step times can be fitted, and one per prediction from a probe."""
    every = [one.condition for one in conditions]
    notes = []
    for found in conditions:
        where = label(found.condition, every)
        probe = next((one for one in found.profiles if one.profile.startswith("cost-probe")), None)
        for profile in filter(candidate, found.profiles):
            model = fit_cost(step_points(profile.levels))
            if model is not None and model.rms_error <= WORST_FIT:
                notes.append(f"{profile.profile} on {where}: {_fitted(model, profile)}")
            if probe is not None and (text := _probed(probe, profile)):
                notes.append(f"{profile.profile} on {where}: {text}")
    return tuple(notes)


def _fitted(model: CostModel, profile: ProfileFinding) -> str:
    levels = [one for one in profile.levels if one.explanation is not None and one.tokens_per_step is not None]
    ratios = {one.concurrency: _foretold(model, one) for one in levels}
    top = max(ratios)
    turn = predicted_break_even(between_levels(ratios), top)
    bend = model.knees[0][0] if model.knees else None
    cost = f"a step takes {1e3 * model.fixed_s:.2f} ms whatever it computes"
    if bend is not None:
        cost += f" and grows from {bend:.0f} verified tokens on"
    return (
        f"fitted step cost ({model.points} step times, {model.rms_error:.1%} off): {cost}; by it speculation pays "
        f"{_up_to(turn, top)}, {_measured(profile)}"
    )


def _foretold(model: CostModel, level: LevelFinding) -> float:
    """The level's speed-up with the fitted step times in place of the measured ones."""
    why = level.explanation
    if why is None or level.batch is None or level.baseline_batch is None:
        return math.nan
    drafted = 0.0
    if level.draft_tokens and level.drafts and level.draft_coverage is not None:
        drafted = level.draft_tokens / level.drafts * level.draft_coverage
    own = model.step_time_s(level.batch, drafted, speculates=True) / why.step_time_s
    base = model.step_time_s(level.baseline_batch, 0.0, speculates=False) / why.baseline_step_time_s
    return math.exp(why.log_speedup) * base / own


def _probed(probe: ProfileFinding, profile: ProfileFinding) -> str:
    """The break-even from the probe's L* and this profile's tokens per step; empty where that says nothing."""
    levels = [one for one in profile.levels if one.valid and one.tokens_per_step is not None]
    coverage = [one.draft_coverage for one in levels if one.draft_coverage is not None]
    if not coverage or min(coverage) < STEADY_COVERAGE:
        return ""
    ratios = predict_speedups(probe.levels, {one.concurrency: one.tokens_per_step or 0.0 for one in levels})
    if len(ratios) < 2:
        return ""
    turn = predicted_break_even(between_levels(ratios), max(ratios))
    return f"from {probe.profile}'s L* it should pay {_up_to(turn, max(ratios))}, {_measured(profile)}"


def _up_to(turn: int, top: int) -> str:
    if turn == 0:
        return "nowhere"
    return f"at every load up to {top}" if turn >= top else f"up to {turn}"


def _measured(profile: ProfileFinding) -> str:
    verdict = profile.break_even["output_tokens_per_s"]
    if verdict.status is BreakEvenStatus.FOUND:
        return "measured " + " and ".join(f"{one.concurrency:g}" for one in verdict.crossings)
    return f"measured: {verdict.status.value.replace('_', ' ')}"
