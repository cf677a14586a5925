"""Scores runs against the truth: every run counts, a censored status as a one-sided interval."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.answer.design import Outcome
from benchmarks.answer.world import World
from loadgen.analysis.model import BreakEven, BreakEvenStatus, Crossing
from loadgen.analysis.refine import half_width

Turns = Sequence[tuple[float, str]]


@dataclass(frozen=True)
class Score:
    """What many runs of one design in one world came to. Shares are of 1; None where nothing was counted."""

    world: str
    design: str
    runs: int
    found: float
    """Share of runs with a crossing."""
    covered: float
    """Share of all runs whose statement is true."""
    by_curve: int
    """Runs with one crossing that a curve narrowed."""
    curve_covered: float | None
    """Of these: the exact interval holds the exact crossing. Nominal 95 %."""
    whole_covered: float | None
    """Of these: the published whole numbers hold the crossing."""
    by_bracket: int
    """Crossings that no curve narrowed."""
    bracket_covered: float | None
    """Of these: the bracket holds the crossing."""
    bias: float | None
    """Mean ln(crossing / nearest true one of its direction) of the curves' crossings."""
    false_found: float | None
    """Share of runs that found a crossing where there is none."""
    half_width: float | None
    """Median half-width of the found crossings, as a share of the crossing."""
    exact_half_width: float | None
    """The same for the real-numbered intervals of the curves, also where they lie within one whole request."""
    seconds: float
    """Mean measured seconds."""


def score(world: World, design: str, outcomes: Sequence[Outcome], *, sessions: int = 1) -> Score:
    """With one session the truth is that of the run's own server starts ("within one server start")."""
    truths = [world.crossings(outcome.shift if sessions == 1 else 0.0) for outcome in outcomes]
    judged = [(outcome.verdict, turns) for outcome, turns in zip(outcomes, truths, strict=True)]
    found = [(verdict, turns) for verdict, turns in judged if verdict.status is BreakEvenStatus.FOUND]
    crossings = [(one, turns) for verdict, turns in found for one in verdict.crossings]
    curves = [(one, turns) for one, turns in crossings if one.kind == "curve"]
    brackets = [(one, turns) for one, turns in crossings if one.kind == "bracket"]
    off = [distance for one, turns in curves if (distance := _off(one, turns)) is not None]
    empty = [verdict for verdict, turns in judged if not turns]
    return Score(
        world=world.name,
        design=design,
        runs=len(outcomes),
        found=len(found) / len(outcomes),
        covered=_share([true_statement(verdict, turns) for verdict, turns in judged]) or 0.0,
        by_curve=len(curves),
        curve_covered=_share([_exactly(one, turns) for one, turns in curves]),
        whole_covered=_share([_wholly(one, turns) for one, turns in curves]),
        by_bracket=len(brackets),
        bracket_covered=_share([_wholly(one, turns) for one, turns in brackets]),
        bias=statistics.fmean(off) if off else None,
        false_found=_share([verdict.status is BreakEvenStatus.FOUND for verdict in empty]),
        half_width=statistics.median(half_width(one) for one, _ in crossings) if crossings else None,
        exact_half_width=statistics.median(map(_exact_half_width, curves)) if curves else None,
        seconds=statistics.fmean(outcome.seconds for outcome in outcomes),
    )


def true_statement(verdict: BreakEven, turns: Turns) -> bool:
    """True if all that the verdict says holds.

    found: every reported interval holds a true crossing of its direction. Else each sure gain lies where it pays and
    each sure loss where it costs: `pays_throughout` says [highest level, ∞), `never_pays` says below the lowest.
    """
    if verdict.status is BreakEvenStatus.FOUND:
        return all(_exactly(one, turns) for one in verdict.crossings)
    first_pays = turns[0][1] == "down" if turns else verdict.status is not BreakEvenStatus.NEVER_PAYS
    if not turns:
        return True
    gains = all(_pays(level, turns, first_pays) for level in verdict.sure_gains)
    return gains and not any(_pays(level, turns, first_pays) for level in verdict.sure_losses)


def _pays(level: int, turns: Turns, first_pays: bool) -> bool:
    passed = sum(level > place for place, _ in turns)
    return first_pays == (passed % 2 == 0)


def _exactly(crossing: Crossing, turns: Turns) -> bool:
    low, high = crossing.exact_ci95 or (crossing.level_below, crossing.level_above)
    return any(low <= place <= high and way == crossing.direction for place, way in turns)


def _wholly(crossing: Crossing, turns: Turns) -> bool:
    low, high = crossing.ci95
    return any(low <= int(place) <= high and way == crossing.direction for place, way in turns)


def _off(crossing: Crossing, turns: Turns) -> float | None:
    """ln(crossing / the nearest true one of its direction); None if there is none."""
    alike = [math.log(crossing.exact / place) for place, way in turns if way == crossing.direction and crossing.exact]
    return min(alike, key=abs, default=None)


def _exact_half_width(curve: tuple[Crossing, Turns]) -> float:
    (low, high), exact = curve[0].exact_ci95 or (0.0, 0.0), curve[0].exact or 1.0
    return (high - low) / 2 / exact


def _share(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None
