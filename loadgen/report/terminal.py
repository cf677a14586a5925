"""The findings in a terminal: a table per condition, then the answer."""

from collections.abc import Iterator
from pathlib import Path

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from loadgen.analysis.model import BreakEvenStatus, Check, ConditionFinding, Findings, ProfileFinding
from loadgen.report.axes_sections import all_sections
from loadgen.report.columns import CHECK_MARK, CHECKS, COLUMNS, SPREAD_KEY, Column, pays, penalties
from loadgen.report.depth import depth_words
from loadgen.report.schedule_sections import is_rung, verified_words
from loadgen.report.schedule_terminal import section_parts
from loadgen.report.words import (
    MEASURE_WORDS,
    STATUS_WORDS,
    advice_words,
    clean,
    condition_words,
    crossing_words,
    foretold,
    headline,
    headline_caveat,
    level_checks,
    level_state,
    levels_words,
    sentence,
)
from loadgen.store.model import Manifest

PAYS_STYLE = {True: "green", False: "red", None: ""}
STATE_STYLE = {"ok": "", "warn": "yellow", "void": "red"}


class LevelTable:
    """A rich renderable: one profile's levels, with as many columns as the width carries."""

    def __init__(self, profile: ProfileFinding) -> None:
        self.profile = profile

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        endless = options.update(max_width=10_000)
        columns = [*COLUMNS, CHECKS]
        table = self._table(columns)
        while (
            any(column.rank for column in columns)
            and Measurement.get(console, endless, table).maximum > options.max_width
        ):
            if CHECKS in columns:
                # The checks' names stand below the table too.
                columns[-1] = CHECK_MARK
            else:
                columns.remove(max(columns, key=lambda column: column.rank))
            table = self._table(columns)
        yield table

    def _table(self, columns: list[Column]) -> Table:
        """The table with these columns."""
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
        for column in columns:
            last = column in (CHECKS, CHECK_MARK)
            table.add_column(column.stacked, justify="left" if last else "right", no_wrap=True)
        for level in self.profile.levels:
            cells = []
            for column in columns:
                style = ""
                if column.header == "speed-up":
                    style = PAYS_STYLE[pays(level)]
                elif column in (CHECKS, CHECK_MARK):
                    style = STATE_STYLE[level_state(level)]
                cells.append(Text(clean(column.text(level)), style=style))
            table.add_row(*cells, style="" if level.valid else "dim")
        return table


def render(findings: Findings, manifest: Manifest, report_path: Path | None) -> RenderableType:
    """A rich renderable of the whole answer, readable from 40 columns up and without colour."""
    parts: list[RenderableType] = []
    for condition in findings.conditions:
        parts += list(_condition(condition, findings, manifest))
    if not findings.conditions:
        parts.append(Text("No condition was measured."))
    for section in all_sections(findings)[::-1]:
        parts += list(section_parts(section))
    parts += [Text(""), _answer(findings, str(manifest.hardware.get("preset") or ""))]
    parts += list(_advice(findings))
    parts += list(_run_checks(findings.checks))
    if report_path is not None:
        parts += [Text(""), Text.assemble("Report: ", (str(report_path), "bold"), overflow="fold")]
    return Group(*parts)


def print_findings(console: Console, findings: Findings, manifest: Manifest, report_path: Path | None = None) -> None:
    """Prints the answer on the console; raises nothing for odd figures."""
    console.print(render(findings, manifest, report_path), highlight=False, soft_wrap=False)


def _condition(condition: ConditionFinding, findings: Findings, manifest: Manifest) -> Iterator[RenderableType]:
    """One condition: a table per profile, its turn, and its checks."""
    yield Text("")
    yield Text(condition_words(condition.condition), style="bold")
    for profile in condition.profiles:
        if is_rung(findings, profile.profile):
            continue
        depth = depth_words(manifest, profile.profile)
        yield Text(f"{clean(profile.profile)}{depth} against {clean(findings.against)}")
        if profile.levels:
            yield LevelTable(profile)
            yield Text(f"  {SPREAD_KEY}", style="dim")
            yield from (Text(f"  {line}", style="yellow") for line in penalties(profile.levels))
        else:
            yield Text("  no level was measured", style="dim")
        for measure, found in profile.break_even.items():
            turns = ", ".join(crossing_words(c, indicative=found.indicative) for c in found.crossings)
            at = f" at {turns}" if turns else ""
            unsure = " (indicative)" if found.indicative else ""
            yield Text(f"  {MEASURE_WORDS.get(measure, clean(measure))}: {STATUS_WORDS[found.status]}{at}{unsure}")
            if found.status is BreakEvenStatus.INCONCLUSIVE:
                # What would settle it: nobody should have to open a page for that.
                yield Padding(Text(sentence(found.sentence), style="yellow"), (0, 0, 0, 4), expand=False)
    alike: dict[tuple[str, bool], list[tuple[str, tuple[int, ...], Check]]] = {}
    for name, levels, check in level_checks(condition):
        if is_rung(findings, name):
            alike.setdefault((check.name, check.voids), []).append((name, levels, check))
        else:
            yield _check(check, f"{clean(name)}, {levels_words(levels)}: ")
    for rows in alike.values():
        yield _rungs_check(rows)


def _rungs_check(rows: list[tuple[str, tuple[int, ...], Check]]) -> RenderableType:
    """One line for what a check says of several K; the report has each."""
    names = list(dict.fromkeys(clean(name) for name, _, _ in rows))
    levels = tuple(sorted({level for _, found, _ in rows for level in found}))
    return _check(rows[0][2], f"{', '.join(names)}, {levels_words(levels)}: ")


def _answer(findings: Findings, simulated: str) -> RenderableType:
    """The one sentence, with the SIMULATED banner and what is simulated where it belongs."""
    body = Text(headline(findings), style="bold")
    caveat = headline_caveat(findings)
    if caveat:
        body.append(f"\n{caveat}", style="not bold yellow")
    title = f"SIMULATED {clean(simulated)}".strip() if findings.simulated else "Answer"
    return Panel(body, title=title, title_align="left", box=box.ROUNDED, expand=True)


def _advice(findings: Findings) -> Iterator[RenderableType]:
    """The recommendation with what it holds for."""
    for told in foretold(findings):
        yield Text(clean(told))
    advice = findings.recommendation
    if advice is None:
        return
    lead, setting, when = advice_words(findings)
    yield Text.assemble(f"{lead} " if lead else "", (setting, "bold"), f" {when}." if when else "")
    lines = f"for {clean(advice.holds_for)} ({verified_words(findings)}). {clean(f'{advice.beyond} {advice.why}')}"
    yield Padding(Text(lines), (0, 0, 0, 2), expand=False)


def _run_checks(checks: tuple[Check, ...]) -> Iterator[RenderableType]:
    """The checks on the run as a whole, voiding ones first."""
    for check in sorted(checks, key=lambda c: not c.voids):
        yield _check(check, "run: ")


def _check(check: Check, where: str) -> RenderableType:
    """One check: what it does to the verdict, its cause and its cure."""
    mark, style = ("void", "red") if check.voids else ("!", "yellow")
    text = Text.assemble(
        (f"{mark} ", style),
        (f"{clean(check.name)}", "bold"),
        f" ({where.rstrip(': ')}): {sentence(check.cause)} Cure: {sentence(check.cure)}",
    )
    return Padding(text, (0, 0, 0, 2), expand=False)
