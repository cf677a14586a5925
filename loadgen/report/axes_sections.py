"""The break-even over prompt length and temperature, as a table per profile and workload."""

from collections.abc import Iterator
from dataclasses import replace

from loadgen.analysis.model import ConditionFinding, Findings, ProfileFinding
from loadgen.report.compare_text import turn_words
from loadgen.report.diagnostic_sections import diagnostic_sections
from loadgen.report.schedule_sections import Section, sections
from loadgen.report.words import MISSING
from loadgen.store.model import Condition


def all_sections(findings: Findings) -> tuple[Section, ...]:
    """What stands beside the speed-ups: proof and ladders first, then the break-even over its axes, then the
    diagnosis.
    """
    return (*sections(findings), *axes_sections(findings), *diagnostic_sections(findings))


def axes_sections(findings: Findings) -> tuple[Section, ...]:
    """One section per profile and workload that was measured at several lengths or temperatures; else none."""
    return tuple(replace(one, anchor=f"axes-{number}") for number, one in enumerate(_sections(findings), 1))


def _sections(findings: Findings) -> Iterator[Section]:
    for workload in dict.fromkeys(one.condition.workload for one in findings.conditions):
        found = [one for one in findings.conditions if one.condition.workload == workload]
        lengths = sorted({one.condition.input_tokens for one in found})
        temperatures = sorted({one.condition.temperature for one in found})
        if len(lengths) < 2 and len(temperatures) < 2:
            continue
        for profile in dict.fromkeys(one.profile for at in found for one in at.profiles):
            rows = tuple(
                (f"{length}", *(_turn(found, profile, Condition(workload, length, t)) for t in temperatures))
                for length in lengths
            )
            yield Section(
                anchor="",
                title=f"{profile} on {workload}: where it turns, by prompt length and temperature",
                lead=("By output tokens/s. A setting holds for the row and column that it was made from.",),
                header=("input tokens", *(f"temperature {t:g}" for t in temperatures)),
                rows=rows,
            )


def _turn(found: list[ConditionFinding], profile: str, condition: Condition) -> str:
    finding = _of(found, profile, condition)
    return MISSING if finding is None else turn_words(finding.break_even["output_tokens_per_s"])


def _of(found: list[ConditionFinding], profile: str, condition: Condition) -> ProfileFinding | None:
    at = next((one for one in found if one.condition == condition), None)
    return next((one for one in at.profiles if one.profile == profile), None) if at else None
