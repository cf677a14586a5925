"""What the HTML page shows, as plain rows: the template only lays them out."""

import hashlib
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from loadgen.analysis.answer import label
from loadgen.analysis.model import (
    BreakEven,
    Check,
    ConditionFinding,
    Findings,
    LevelFinding,
    ProfileFinding,
    ScheduleEdges,
)
from loadgen.report.axes_sections import all_sections
from loadgen.report.chart import Chart
from loadgen.report.columns import NO_SPREAD, counts, pays, spread
from loadgen.report.depth import depths
from loadgen.report.detail import Detail
from loadgen.report.figures import charts
from loadgen.report.summary import dumps
from loadgen.report.svg import speedup_svg
from loadgen.report.timeline import timelines
from loadgen.report.traces import Series
from loadgen.report.words import (
    MEASURE_WORDS,
    STATUS_WORDS,
    condition_words,
    crossing_words,
    duration,
    interval,
    level_checks,
    level_state,
    levels_words,
    ratio,
)
from loadgen.store.model import CellResult, Condition, Manifest, ServerFacts

Facts = list[tuple[str, str]]
LEAD_CHARTS = 4
"""Of a condition: where it pays, throughput, steps and their cause. The rest is behind a fold: a page of a hundred
screens answers nobody.
"""


GLANCE_KEY = f"± is half of the 95 % interval, n the pairs of cells; {NO_SPREAD}."


@dataclass(frozen=True)
class GlanceCell:
    """One speed-up in the overview: its words, its tone (`gain`, `loss`, `even`, `void`, `none`), and its hover."""

    text: str
    tone: str
    title: str
    spread: str = ""
    """`± 0.03`: half of the 95 % interval; empty where there is none."""


@dataclass(frozen=True)
class GlanceRow:
    """One profile under one condition, in the overview."""

    condition: str
    profile: str
    verdict: str
    turn: str
    cells: tuple[GlanceCell, ...]
    n: str
    """Pairs behind each cell: `3`, or `1–3` where levels differ."""


@dataclass(frozen=True)
class ProfileView:
    """One profile's part of a condition's section."""

    finding: ProfileFinding
    draft_tokens: int | None
    turns: tuple[tuple[str, str, str], ...]
    """(measure, verdict, sentence)."""


@dataclass(frozen=True)
class ConditionView:
    """One condition's section."""

    anchor: str
    title: str
    finding: ConditionFinding
    charts: tuple[Chart, ...]
    profiles: tuple[ProfileView, ...]
    picture: str | None
    """The speed-up chart as SVG, for a page without JavaScript."""


@dataclass(frozen=True)
class CheckView:
    """One check and where it spoke."""

    check: Check
    where: str


def jumps(findings: Findings, conditions: Sequence[ConditionView], *, time: bool) -> list[tuple[str, str]]:
    """(anchor, words) of each part of the page, in its order, for the list at its top."""
    found = [("advice", "What to set")] if findings.recommendation else []
    found += [(section.anchor, section.title) for section in all_sections(findings)]
    if glance(findings):
        found.append(("glance", "At a glance"))
    among = [one.condition for one in findings.conditions]
    found += [(one.anchor, label(one.finding.condition, among)) for one in conditions]
    if time:
        found.append(("time", "Over the run"))
    spoke = len(check_views(findings))
    return [*found, ("checks", f"Checks ({spoke})" if spoke else "Checks"), ("how", "How")]


def glance_levels(findings: Findings) -> list[int]:
    """All levels of the run, ascending."""
    return sorted({r.concurrency for c in findings.conditions for p in c.profiles for r in p.levels})


def glance(findings: Findings) -> list[GlanceRow]:
    """The overview: a row per condition and profile, a cell per level."""
    levels = glance_levels(findings)
    rows: list[GlanceRow] = []
    for condition in findings.conditions:
        for profile in condition.profiles:
            by_level = {level.concurrency: level for level in profile.levels}
            cells = tuple(_glance_cell(by_level.get(level)) for level in levels)
            verdict, turn = _verdict(profile.break_even.get("output_tokens_per_s"))
            n = counts(level.n for level in profile.levels if level.valid)
            rows.append(GlanceRow(condition_words(condition.condition), profile.profile, verdict, turn, cells, n))
    return rows


def _glance_cell(level: LevelFinding | None) -> GlanceCell:
    """A level's speed-up with the tone of its verdict."""
    if level is None:
        return GlanceCell("–", "none", "not measured")
    if not level.valid:
        names = ", ".join(check.name for check in level.checks) or "no valid pair"
        return GlanceCell("void", "void", f"no verdict: {names}")
    bounds = interval(level.speedup.ci95) if level.speedup else ""
    title = f"95 % CI {bounds}, n = {level.n}" if bounds else f"no interval, n = {level.n}"
    tone = {True: "gain", False: "loss", None: "even"}[pays(level)]
    return GlanceCell(ratio(level.speedup), tone, title, spread(level.speedup))


def _verdict(found: BreakEven | None) -> tuple[str, str]:
    """(the verdict in words, where it turns with its interval)."""
    if found is None:
        return "not analysed", ""
    turns = "; ".join(crossing_words(c, indicative=found.indicative) for c in found.crossings)
    unsure = "indicative" if found.indicative else ""
    return STATUS_WORDS[found.status], ", ".join(part for part in (turns, unsure) if part)


def condition_views(
    findings: Findings, manifest: Manifest, cells: Sequence[CellResult], detail: Detail
) -> list[ConditionView]:
    """One section per condition."""
    views = []
    for index, condition in enumerate(findings.conditions, 1):
        profiles = tuple(
            ProfileView(profile, depths(manifest).get(profile.profile), turns(profile))
            for profile in condition.profiles
        )
        edges = edges_in(findings, condition)
        drawn = tuple(charts(condition, findings.against, cells, detail, edges))
        picture = speedup_svg(condition, edges)
        title = condition_words(condition.condition)
        views.append(ConditionView(f"c{index}", title, condition, drawn, profiles, picture))
    return views


def edges_in(findings: Findings, condition: ConditionFinding) -> ScheduleEdges | None:
    """The recommended schedule's edges, if it was made from this condition."""
    edges = findings.recommendation.edges if findings.recommendation else None
    return edges if edges is not None and edges.condition == condition.condition else None


def run_charts(findings: Findings, cells: Sequence[CellResult], detail: Detail) -> list[Chart]:
    """The charts over the whole run; a profile looks as in the conditions' charts."""
    series: dict[str, Series] = {}
    for condition in findings.conditions:
        for index, profile in enumerate(condition.profiles):
            series.setdefault(profile.profile, Series(profile, index))
    return timelines(list(series.values()), cells, detail.gauges, findings.against)


def turns(profile: ProfileFinding) -> tuple[tuple[str, str, str], ...]:
    """(measure, verdict with its crossings, sentence) of each break-even of a profile."""
    rows = []
    for measure, found in profile.break_even.items():
        verdict, turn = _verdict(found)
        words = f"{verdict} at {turn}" if found.crossings else ", ".join(part for part in (verdict, turn) if part)
        rows.append((MEASURE_WORDS.get(measure, measure), words, found.sentence))
    return tuple(rows)


def check_views(findings: Findings) -> list[CheckView]:
    """Every check that spoke, those that void first."""
    views = [CheckView(check, "whole run") for check in findings.checks]
    for condition in findings.conditions:
        for profile, levels, check in level_checks(condition):
            where = f"{condition_words(condition.condition)}: {profile}, {levels_words(levels)}"
            views.append(CheckView(check, where))
    return sorted(views, key=lambda view: not view.check.voids)


def voided_levels(findings: Findings) -> int:
    """How many levels carry no verdict."""
    rows = [r for c in findings.conditions for p in c.profiles for r in p.levels]
    return sum(level_state(row) == "void" for row in rows)


def head_facts(findings: Findings, manifest: Manifest, cells: Sequence[CellResult]) -> Facts:
    """The few facts that stand beside the answer."""
    facts = [
        ("Model", findings.model or "unknown"),
        ("vLLM", findings.vllm_version or "unknown"),
        ("Engine", findings.engine),
        ("Against", findings.against),
        ("Repeats", f"{_repeats(manifest)} × {manifest.sessions} session{'s' if manifest.sessions > 1 else ''}"),
    ]
    return [*facts, ("Cells", str(len(cells)))] if cells else facts


def _repeats(manifest: Manifest) -> str:
    """`3`, or `3 to 6` where some levels were given more later."""
    added = [int(n) for one in manifest.settings.get("extensions", ()) for _, n in one]
    return f"{manifest.repeats} to {max(added)}" if any(n > manifest.repeats for n in added) else str(manifest.repeats)


def how_facts(manifest: Manifest, cells: Sequence[CellResult]) -> Facts:
    """How the run was made."""
    depth = ", ".join(f"{name} K = {k}" for name, k in depths(manifest).items())
    facts = [
        ("Measured", manifest.created_at),
        ("loadgen", manifest.loadgen_version),
        ("Engine", _engine(manifest)),
        ("Profiles", ", ".join(manifest.profiles)),
        ("Draft tokens", depth or "none"),
        ("Levels", ", ".join(map(str, manifest.levels))),
        ("Repeats and sessions", f"{_repeats(manifest)} and {manifest.sessions}, order: {manifest.order}"),
        ("Seed", str(manifest.seed)),
        ("Sampling", pairs(manifest.sampling)),
        ("Hardware", pairs(manifest.hardware)),
    ]
    if cells:
        outcomes: Counter[str] = Counter()
        for cell in cells:
            outcomes.update(cell.outcomes)
        facts.append(("Requests", ", ".join(f"{count:,} {name}" for name, count in outcomes.most_common() if count)))
        facts.append(("Measuring windows", f"{duration(sum(c.window_s for c in cells))} in {len(cells)} cells"))
    return facts


def _engine(manifest: Manifest) -> str:
    """The engine and why it was taken; a reason that begins with its name says it already."""
    if manifest.engine_reason.startswith(manifest.engine):
        return manifest.engine_reason
    return f"{manifest.engine}: {manifest.engine_reason}"


def prompt_hashes(cells: Iterable[CellResult]) -> list[tuple[str, str, str]]:
    """(condition, SHA-256 over its cells' prompt hashes, whether all profiles had the same prompts) per condition."""
    by_place: dict[Condition, dict[tuple[int, int, int], set[str]]] = {}
    for cell in cells:
        if not cell.prompts_sha256:
            continue  # imported from another tool, which does not say what it sent
        key = cell.key
        place = by_place.setdefault(key.condition, {})
        place.setdefault((key.session, key.level, key.repeat), set()).add(cell.prompts_sha256)
    rows = []
    for condition, places in by_place.items():
        digest = hashlib.sha256()
        for _, hashes in sorted(places.items()):
            digest.update("".join(sorted(hashes)).encode())
        same = all(len(hashes) == 1 for hashes in places.values())
        words = "the same for all profiles" if same else "NOT the same for all profiles"
        rows.append((condition_words(condition), digest.hexdigest(), words))
    return rows


def effective_rows(servers: Sequence[ServerFacts]) -> list[tuple[str, list[str], bool]]:
    """(setting, its value on each server, whether the servers differ) for all effective settings."""
    keys = dict.fromkeys(key for server in servers for key in server.effective)
    rows = []
    for key in keys:
        values = [dumps(server.effective[key], None) if key in server.effective else "–" for server in servers]
        rows.append((key, values, len(set(values)) > 1))
    return rows


def command(words: Sequence[str]) -> str:
    """A command line that a shell takes as it stands."""
    return shlex.join(words)


PROGRAM = ".venv/bin/loadgen"


def repeat_command(argv: Sequence[str]) -> str:
    """The command line that measured the run, as it runs where `make setup` was: no shell need be prepared."""
    named = argv and argv[0].rsplit("/", 1)[-1] == "loadgen"
    return command([PROGRAM, *(argv[1:] if named else argv)])


def pairs(values: dict[str, Any]) -> str:
    """`temperature 0.0, top_p 1.0`; texts without their quotes, unknown values left out."""
    known = ((key, value) for key, value in values.items() if value is not None)
    return ", ".join(f"{key} {v if isinstance(v, str) else dumps(v, None)}" for key, v in known) or "none"
