"""What "best" means for a run: an objective, and the limits that a setting must surely keep at a load to count."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from loadgen.analysis.capacity_model import LoadPoint, Slo, SloFinding, Verdict
from loadgen.analysis.capacity_quantile import judge_slo, overall
from loadgen.errors import UsageError
from loadgen.store.codec import convert
from loadgen.store.model import Condition, Manifest

SETTING = "goal"
"""Key of the manifest's settings that holds the goal, where it is not the default one."""
OBJECTIVES = ("throughput", "tpot")


@dataclass(frozen=True)
class Goal:
    """The objective, and the limits within which it counts."""

    objective: str = "throughput"
    slos: tuple[Slo, ...] = ()

    @property
    def words(self) -> str:
        """`throughput within ttft_p99 500 ms and tpot_p99 30 ms`."""
        return f"{self.objective} {within_words(self.slos)}" if self.slos else self.objective


@dataclass(frozen=True)
class SloLevel:
    """Whether one setting keeps the limits at one load."""

    verdict: Verdict
    findings: tuple[SloFinding, ...]
    requests_per_s: float = 0.0


@dataclass(frozen=True)
class SloTable:
    """The limits, and each setting's verdict by load; what is not there is unresolved."""

    slos: tuple[Slo, ...]
    levels: Mapping[tuple[Condition, str], Mapping[int, SloLevel]] = field(default_factory=dict)

    def at(self, condition: Condition, profile: str, level: int) -> SloLevel:
        """The verdict on one setting at one load."""
        return self.levels.get((condition, profile), {}).get(level, SloLevel(Verdict.UNRESOLVED, ()))

    def met(self, condition: Condition, profile: str, level: int) -> bool:
        """Surely kept: the whole interval of each quantile lies within its limit."""
        return self.at(condition, profile, level).verdict is Verdict.MET


def goal_of(manifest: Manifest) -> Goal:
    """The run's goal; throughput without limits where nothing else was asked for. UsageError for what no loadgen
    writes.
    """
    stored = manifest.settings.get(SETTING) or {}
    try:
        found = convert(stored, Goal)
    except ValueError as error:
        raise UsageError(
            f"settings.{SETTING} in the manifest of {manifest.run_id} cannot be read ({error}); repair or remove it."
        ) from error
    if found.objective not in OBJECTIVES:
        raise UsageError(
            f"settings.{SETTING} in the manifest of {manifest.run_id} asks for {found.objective!r}, which is none of "
            f"{', '.join(OBJECTIVES)}; repair or remove it."
        )
    return found


def slo_table(slos: Sequence[Slo], points: Mapping[tuple[Condition, str], Sequence[LoadPoint]]) -> SloTable:
    """The verdicts from each level's single requests, pooled over its valid cells (docs/planning.md)."""
    levels = {place: {point.level: _judged(point, slos) for point in found} for place, found in points.items() if found}
    return SloTable(tuple(slos), levels)


def _judged(point: LoadPoint, slos: Sequence[Slo]) -> SloLevel:
    found = tuple(one for slo in slos if (one := judge_slo(slo, point.begun, point.ended)) is not None)
    return SloLevel(overall(found, len(slos)), found, point.requests_per_s)


def within_words(slos: Sequence[Slo]) -> str:
    """`within ttft_p99 500 ms and tpot_p99 30 ms`."""
    return "within " + " and ".join(f"{slo.name} {milliseconds(slo.limit_s)}" for slo in slos)


def milliseconds(seconds: float) -> str:
    """`30 ms`; two digits after the point below 1 ms."""
    if seconds >= 10:
        return f"{seconds:.3g} s" if seconds < 999.5 else f"{seconds:.0f} s"
    value = 1000 * seconds
    # From 1,000 on three digits would be written with an exponent.
    return f"{value:.3g} ms" if value < 999.5 else f"{value:.0f} ms"


def finding_words(one: SloFinding) -> str:
    """`tpot_p99 35 ms (33 to 38)`, or how many requests it would take to bound it."""
    estimate = one.estimate
    if one.verdict is Verdict.UNRESOLVED and estimate.high is None:
        return f"{one.slo.name} has {estimate.n} requests and needs {estimate.needed}"
    bounds = [milliseconds(bound) if bound is not None else "?" for bound in (estimate.low, estimate.high)]
    return f"{one.slo.name} {milliseconds(estimate.value)} ({bounds[0]} to {bounds[1]})"


def more_seconds(level: SloLevel) -> float | None:
    """Seconds at this load until an unresolved limit can be told: the requests that its quantile needs; where it has
    them and the interval holds the limit, as many again three times, which halves the interval. None if unknown.
    """
    missing = [
        max(one.estimate.needed - one.estimate.n, 0) or 3 * one.estimate.n
        for one in level.findings
        if one.verdict is Verdict.UNRESOLVED
    ]
    return max(missing) / level.requests_per_s if missing and level.requests_per_s > 0 else None


def about(seconds: float) -> str:
    """`40 s`, `12 min`, `3.5 h`: as exact as an estimate is."""
    if seconds < 120:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
