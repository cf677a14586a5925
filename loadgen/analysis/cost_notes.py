"""What the fitted step cost and a cost probe say of break-evens, in sentences, each beside what was measured."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from loadgen.analysis.answer import candidate, label
from loadgen.analysis.costmodel import (
    CostModel,
    between_levels,
    fit_cost,
    predicted_break_even,
)
from loadgen.analysis.model import BreakEvenStatus, ConditionFinding, Explanation, ProfileFinding
from loadgen.analysis.probe import Probe
from loadgen.analysis.step_points import LevelSteps
from loadgen.analysis.stepcost import StepCost, StepPoint, Steps
from loadgen.store.model import Condition

STEADY_COVERAGE = 0.9
"""A method that drafts in nearly every step: only then does a probe's cost stand for it."""
SAME_K = 0.25
"""Mean draft lengths that differ by more are of another K (the last draft of a request may be cut)."""
WORST_FIT = 0.05
"""A fit that misses the measured step times by more foretells nothing (the goal of issue 4 is 5 % on speed-ups)."""
DRAWS = 200
MeasuredSteps = Mapping[tuple[Condition, str], Sequence[LevelSteps]]


def cost_notes(conditions: Sequence[ConditionFinding], steps: MeasuredSteps) -> tuple[str, ...]:
    """One sentence per profile and condition whose step times can be fitted, and one per prediction from a probe."""
    every = [one.condition for one in conditions]
    notes = []
    for found in conditions:
        where = label(found.condition, every)
        asked = next((one for one in found.profiles if one.profile.startswith("cost-probe")), None)
        probe = _probe(asked, steps.get((found.condition, asked.profile), ())) if asked is not None else None
        drafted = _drafted(asked) if asked is not None else None
        if asked is not None and probe is not None and (text := _lengths(probe, drafted)):
            notes.append(f"{asked.profile} on {where}: {text}")
        for profile in filter(candidate, found.profiles):
            own = steps.get((found.condition, profile.profile), ())
            model = fit_cost([point for level in own for point in (level.plain, level.own)])
            if model is not None and model.rms_error <= WORST_FIT and (told := _fitted(model, own, profile)):
                notes.append(f"{profile.profile} on {where}: {told}")
            if asked is not None and probe is not None and (text := _probed(probe, asked.profile, drafted, profile)):
                notes.append(f"{profile.profile} on {where}: {text}")
    return tuple(notes)


def _probe(found: ProfileFinding, steps: Sequence[LevelSteps]) -> Probe:
    model = fit_cost([point for level in steps for point in (level.plain, level.own)])
    return Probe(found, steps, model if model is not None and model.rms_error <= WORST_FIT else None)


def _fitted(model: CostModel, steps: Sequence[LevelSteps], profile: ProfileFinding) -> str:
    speedups = {level.concurrency: level.explanation for level in profile.levels if level.explanation is not None}
    levels = [one for one in steps if one.level in speedups]
    if not levels:
        return ""
    points = [point for level in levels for point in (level.plain, level.own)]
    arrays = Steps(points)
    measured = np.log([point.step_time_s for point in points])
    known = np.array([speedups[level.level].log_speedup for level in levels])

    def turn(cost: StepCost) -> int:
        """Of the levels' speed-ups with the fitted step times in place of the measured ones."""
        beyond = np.log(arrays.mean_s(cost)) - measured
        logs = known + beyond[0::2] - beyond[1::2]
        return _turn([level.level for level in levels], logs)

    top = levels[-1].level
    drawn = sorted(turn(cost) for cost in model.draws(DRAWS))
    low, high = drawn[int(0.025 * DRAWS)], drawn[int(0.975 * DRAWS) - 1]
    sure = "" if low == high else f" (95 %: {low} to {'beyond ' if high >= top else ''}{high})"
    regimes = _regimes(model.cost, levels, speedups)
    return (
        f"fitted step cost ({model.points} step times, {model.rms_error:.1%} off): {regimes}; by "
        f"it speculation pays {_up_to(turn(model.cost), top)}{sure}, {_measured(profile)}"
    )


def _turn(levels: Sequence[int], logs: NDArray[np.float64]) -> int:
    """As `predicted_break_even(between_levels(…))`, for many curves at once."""
    whole = np.arange(1, levels[-1] + 1)
    losses = np.flatnonzero(np.interp(np.log2(whole), np.log2(levels), logs) < 0.0)
    return int(losses[0]) if len(losses) else levels[-1]


def _regimes(cost: StepCost, levels: Sequence[LevelSteps], explained: Mapping[int, Explanation]) -> str:
    """Up to where the baseline is memory-bound, by each level's one definition of it (`explain.py`), and where steps
    with prompts leave the graphs.
    """
    text = f"computing outweighs reading the weights from {cost.knee:.0f} tokens a step on"
    known = [(level, one.regime) for level, one in sorted(explained.items()) if one.regime != "unknown"]
    if known:
        bound = [level for level, _ in itertools.takewhile(lambda one: one[1] == "memory-bound", known)]
        within = "nowhere" if not bound else "at every level" if len(bound) == len(known) else f"up to {bound[-1]}"
        text = f"decoding without speculation is memory-bound {within}, {text}"
    beyond = [next((one.level for one in levels if _leaves_graphs(side(one))), None) for side in (_own, _plain)]
    if beyond[0] is not None and beyond[0] != beyond[1]:
        limit = levels[0].own.limit
        text += (
            f"; with a prompt in it, a step is larger than the largest CUDA graph ({limit} tokens) from {beyond[0]} in "
            f"flight on, without speculation {'nowhere' if beyond[1] is None else f'from {beyond[1]} on'}: raise "
            "max_cudagraph_capture_size and measure again"
        )
    return text


def _own(level: LevelSteps) -> StepPoint:
    return level.own


def _plain(level: LevelSteps) -> StepPoint:
    return level.plain


def _leaves_graphs(point: StepPoint) -> bool:
    """Whether the usual step with a prompt is larger than every captured graph, while one that decodes is not."""
    carrying = max((group for group in point.groups if group.prompts), key=lambda one: one.share, default=None)
    return carrying is not None and point.verified + carrying.prompt_tokens > point.limit >= point.verified


def _lengths(probe: Probe, drafted: float | None) -> str:
    """L* by level, and up to where some acceptance lengths would pay by it; empty below two levels."""
    if len(probe.levels) < 2:
        return ""
    lengths = ", ".join(f"{probe.length(level):.2f} at {level}" for level in probe.levels)
    top = probe.levels[-1]
    turns = [
        f"{tokens} would pay {_up_to(probe.turn(tokens), top)}"
        for tokens in (1.5, 2.0, 2.5, 3.0)
        if drafted is None or tokens <= 1 + drafted
    ]
    return (
        f"with every draft rejected, a step breaks even at so many tokens (L*): {lengths}; for these prompts and this "
        f"K, tokens a step of {', '.join(turns)}"
    )


def _drafted(profile: ProfileFinding) -> float | None:
    """Draft tokens per draft, over its levels: K where drafts are of one length."""
    known = [(one.draft_tokens, one.drafts) for one in profile.levels if one.draft_tokens and one.drafts]
    drafts = sum(drafts for _, drafts in known)
    return sum(tokens for tokens, _ in known) / drafts if drafts else None


def _probed(probe: Probe, name: str, drafted: float | None, profile: ProfileFinding) -> str:
    """The break-even from the probe's L* and this profile's tokens per step; empty where that says nothing: drafts that
    are not made in every step, or of another K.
    """
    levels = [one for one in profile.levels if one.valid and one.tokens_per_step is not None]
    coverage = [one.draft_coverage for one in levels if one.draft_coverage is not None]
    if not coverage or min(coverage) < STEADY_COVERAGE:
        return ""
    own = _drafted(profile)
    if own is None or drafted is None or abs(own - drafted) > SAME_K:
        return ""
    ratios = probe.speedups({one.concurrency: one.tokens_per_step or 0.0 for one in levels})
    if len(ratios) < 2:
        return ""
    turn = predicted_break_even(between_levels(ratios), max(ratios))
    checked = [
        abs(ratios[one.concurrency] / one.speedup.value - 1)
        for one in levels
        if one.speedup is not None and one.concurrency in ratios
    ]
    off = f" (checked at {len(checked)} levels: its speed-ups are off by at most {max(checked):.0%})" if checked else ""
    return f"from {name}'s L* it should pay {_up_to(turn, max(ratios))}, {_measured(profile)}{off}"


def _up_to(turn: int, top: int) -> str:
    if turn == 0:
        return "nowhere"
    return f"at every load up to {top}" if turn >= top else f"up to {turn}"


def _measured(profile: ProfileFinding) -> str:
    verdict = profile.break_even["output_tokens_per_s"]
    if verdict.status is BreakEvenStatus.FOUND:
        return "measured " + " and ".join(f"{one.concurrency:g}" for one in verdict.crossings)
    return f"measured: {verdict.status.value.replace('_', ' ')}"
