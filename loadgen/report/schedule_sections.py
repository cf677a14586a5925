"""A ladder of K, its schedule and its verification as plain tables: every report lays them out in its own way."""

from collections.abc import Iterator
from dataclasses import dataclass

from loadgen.analysis.capacity_model import Verdict as SloVerdict
from loadgen.analysis.goal import within_words
from loadgen.analysis.model import ConditionFinding, Findings
from loadgen.analysis.ratios import MIN_N
from loadgen.analysis.schedule_answer import best_k
from loadgen.analysis.schedule_ladder import LadderFinding
from loadgen.analysis.schedule_slo import out_words, unmet_words
from loadgen.analysis.verify_attach import measured_again
from loadgen.analysis.verify_model import Verdict, Verification
from loadgen.analysis.verify_pooled import Pooled
from loadgen.analysis.verify_words import role_words, schedule_words
from loadgen.report.columns import NO_SPREAD, counts, spread
from loadgen.report.words import MISSING, condition_words, interval, percent, ratio, ratio_of

VERDICT_WORDS = {
    Verdict.HOLDS: "holds",
    Verdict.FAILS: "does not hold",
    Verdict.OPEN: "not resolved",
}
TONES = {Verdict.HOLDS: "gain", Verdict.FAILS: "loss", Verdict.OPEN: ""}


@dataclass(frozen=True)
class Section:
    """A title, what it says, a table, and what is to be said below it."""

    anchor: str
    title: str
    lead: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    tag: str = ""
    tone: str = ""
    """`gain`, `loss` or nothing: how the tag is meant."""


def sections(findings: Findings) -> tuple[Section, ...]:
    """The verification first, then each ladder with its schedule; empty for a run with neither."""
    return tuple(_sections(findings))


def verified_words(findings: Findings) -> str:
    """How far the recommendation was put to the test."""
    if findings.verification is not None:
        return f"re-measured: {VERDICT_WORDS[findings.verification.verdict]}"
    verified = findings.recommendation.verified if findings.recommendation else None
    if verified is None:
        return "not re-measured yet"
    return "re-measured: holds" if verified else "re-measured: does not hold"


def is_rung(findings: Findings, profile: str) -> bool:
    """True if the profile is one K of a ladder, whose figures stand in the ladder's table."""
    return any(profile in one.arms for one in findings.ladders)


def _sections(findings: Findings) -> Iterator[Section]:
    if findings.verification is not None:
        yield verification_section(findings.verification)
    for index, ladder in enumerate(findings.ladders, 1):
        condition = next((one for one in findings.conditions if one.condition == ladder.condition), None)
        if condition is not None:
            yield _ladder(f"ladder-{index}", ladder, condition, _again(findings, ladder))
            yield _schedule(f"schedule-{index}", ladder, condition)


def verification_section(found: Verification) -> Section:
    """Each load: the claimed server beside the other ones."""
    rows = tuple(
        (
            one.place,
            role_words(found.claim, one.claimed),
            role_words(found.claim, one.other),
            ratio_of(one.ratio),
            interval(one.ci90) or MISSING,
            str(one.n),
            one.standing,
        )
        for one in found.comparisons
    )
    lead = [found.sentence[:1].upper() + found.sentence[1:]]
    if found.schedule_note:
        lead.append(found.schedule_note)
    notes = [
        *_limit_notes(found),
        f"No worse means within {percent(found.margin, 1)} ({found.margin_reason}).",
        f"Seed {found.seed}: other prompts than the run's.",
        *_pooled_note(found),
        *(f"vLLM: {text}" for text in found.overrides),
        *found.notes,
    ]
    return Section(
        "verified",
        "Measured again",
        tuple(lead),
        ("in flight", "claimed", "beside", "ratio", "90 % CI", "n", "verdict"),
        rows,
        tuple(notes),
        VERDICT_WORDS[found.verdict],
        TONES[found.verdict],
    )


def _pooled_note(found: Verification) -> list[str]:
    """Why intervals stand at two repeats, where a sweep prints none below three."""
    few = any(one.ci90 is not None and one.n < MIN_N for one in found.comparisons)
    return (
        [f"Intervals at n < {MIN_N}: each variance learns from the other loads of the same two servers."] if few else []
    )


def _again(findings: Findings, ladder: LadderFinding) -> dict[int, Pooled]:
    """What was measured again of this ladder."""
    found = findings.verification
    if found is None or (found.claim.profile, found.claim.condition) != (ladder.of, ladder.condition):
        return {}
    return measured_again(findings, found)


def _limit_notes(found: Verification) -> list[str]:
    """One line for each server that did not surely keep the limits at a load."""
    return [
        f"Limits at {one.concurrency}, {role_words(found.claim, one.role)}: {one.verdict.value}, {one.words}."
        for one in found.limits
        if one.verdict is not SloVerdict.MET
    ]


def _ladder(anchor: str, ladder: LadderFinding, condition: ConditionFinding, again: dict[int, Pooled]) -> Section:
    """Speed-ups by load, a column for each K."""
    arms = sorted(ladder.arms.items(), key=lambda item: (item[1].constant_schedule, item[1].k))
    by_name = {profile.profile: {r.concurrency: r for r in profile.levels} for profile in condition.profiles}
    levels = sorted({level for name, _ in arms for level in by_name.get(name, {})})
    rows = []
    for level in levels:
        found = [by_name.get(name, {}).get(level) for name, _ in arms]
        cells = [
            MISSING if r is None else "void" if not r.valid else f"{ratio(r.speedup)} {spread(r.speedup)}".strip()
            for r in found
        ]
        best = next((k for _, last, k in ladder.by_static.in_flight if level <= last), 0)
        n = counts(r.n for r in found if r is not None and r.valid)
        rows.append((str(level), *cells, n, str(best) if best else "none"))
    header = ("in flight", *(f"{'sched. ' if a.constant_schedule else ''}K = {a.k}" for _, a in arms), "n", "best K")
    notes = [
        f"± is half of the 95 % interval, n the pairs of cells; {NO_SPREAD}.",
        "Ties go to the smaller K; best by static servers.",
    ]
    if ladder.costs_measured:
        notes.append("sched.: the same K as a constant schedule, which costs what a schedule costs.")
    return Section(
        anchor,
        f"Speed-up by K: {ladder.of}, {condition_words(ladder.condition)}",
        (f"{ladder.of}: {best_k(ladder, again)}.",),
        header,
        tuple(rows),
        tuple(notes),
    )


def _schedule(anchor: str, ladder: LadderFinding, condition: ConditionFinding) -> Section:
    """What a schedule would give at each load."""
    schedule = ladder.schedule
    measured = [r for p in condition.profiles if p.profile in ladder.arms for r in p.levels if r.valid]
    static = f"over static K = {schedule.static_k}" if schedule.static_k else "over static"
    rows = tuple(
        (
            str(level.concurrency),
            str(level.k),
            _with_interval(level.speedup, level.speedup_ci95),
            _with_interval(level.over_static, level.over_static_ci95),
            counts(r.n for r in measured if r.concurrency == level.concurrency),
        )
        for level in schedule.levels
    )
    limits = within_words(ladder.slo.slos) if ladder.slo else ""
    priced = (
        "Made from constant schedules, so that its costs are in it."
        if ladder.costs_measured
        else "Made from static servers: what a schedule itself costs is not in it."
    )
    return Section(
        anchor,
        f"The schedule: {ladder.of}, {condition_words(ladder.condition)}",
        (
            f"{schedule_words(schedule.ranges)} in requests per step. {schedule.sentence}",
            *filter(None, [unmet_words(ladder)]),
        ),
        ("in flight", "K", "over no speculation", static, "n"),
        rows,
        (
            f"In brackets: 95 % interval, n the pairs of cells; {NO_SPREAD}.",
            priced,
            *(f"Not surely {limits} at {line}." for line in out_words(ladder)),
        ),
    )


def _with_interval(value: float, ci95: tuple[float, float] | None) -> str:
    return f"{ratio_of(value)} ({interval(ci95)})" if ci95 else ratio_of(value)
