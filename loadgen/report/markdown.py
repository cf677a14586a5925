"""report.md: the answer first, for pull requests and wikis."""

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from loadgen.analysis.model import ConditionFinding, Findings, ProfileFinding
from loadgen.report import view
from loadgen.report.axes_sections import all_sections
from loadgen.report.columns import CHECKS, COLUMNS, SPREAD_KEY, penalties
from loadgen.report.depth import depth_words
from loadgen.report.schedule_sections import Section, verified_words
from loadgen.report.title import short_title
from loadgen.report.words import advice_words, clean, condition_words, headline, headline_caveat, sentence
from loadgen.store.model import CellResult, Manifest, ServerFacts

NO_PICTURES: Mapping[int, str] = MappingProxyType({})
# Markdown's own marks, HTML's, the table's pipe, and @ and # which forges turn into mentions and links.
SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&@!$])")
# Our own commands in advice, which are shown as code; anything else in back-ticks stays escaped.
ESCAPED_COMMAND = re.compile(r"\\`(loadgen [a-z]+)\\`")
WEB_ADDRESS = re.compile(r"(https?|ftp)(:)(?=//)|(www)(\.)", re.IGNORECASE)


def escape(text: object) -> str:
    """The text on one line with every mark escaped, so that it stays text in a table cell too (C102)."""
    escaped = SPECIAL.sub(r"\\\1", clean(text)).replace("\\<", "&lt;").replace("\\>", "&gt;").replace("\\&", "&amp;")
    return WEB_ADDRESS.sub(lambda m: f"{m[1] or m[3]}\\{m[2] or m[4]}", escaped).replace("\\@", "@\u200b")


def code(text: object) -> str:
    """The text as an inline code span, whatever back-ticks it holds; not for table cells."""
    cleaned = clean(text)
    fence = "`" * (max((len(run) for run in re.findall("`+", cleaned)), default=0) + 1)
    pad = " " if cleaned.startswith("`") or cleaned.endswith("`") or not cleaned else ""
    return f"{fence}{pad}{cleaned}{pad}{fence}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """A Markdown table; columns in `left` are left-aligned, the others right. Cells come escaped."""
    rule = [":--" if i in left else "--:" for i in range(len(header))]
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, rule, *rows))


def render_markdown(
    findings: Findings,
    manifest: Manifest,
    cells: Sequence[CellResult] = (),
    servers: Sequence[ServerFacts] = (),
    pictures: Mapping[int, str] = NO_PICTURES,
) -> str:
    """The whole report as Markdown text; `pictures` maps a condition's index to the file of its speed-up chart."""
    parts: list[str] = [*_answer(findings)]
    for section in all_sections(findings):
        parts += list(_section(section))
    parts += list(_glance(findings))
    for index, condition in enumerate(findings.conditions):
        parts += list(_condition(condition, findings, manifest, pictures.get(index)))
    parts += [*_checks(findings), *_how(findings, manifest, cells, servers)]
    return "\n\n".join(parts) + "\n"


def _answer(findings: Findings) -> Iterator[str]:
    """The answer, what weakens it, and what to set."""
    whole = headline(findings)
    yield f"# {escape(short_title(whole))}"
    if short_title(whole) != whole:
        yield escape(whole)
    if findings.simulated:
        yield "**SIMULATED**: these figures come from a simulator, not from hardware."
    caveat = headline_caveat(findings)
    if caveat:
        yield f"*{caveat}*"
    advice = findings.recommendation
    if advice is not None:
        lead, setting, when = advice_words(findings)
        told = " ".join(filter(None, [lead, setting if advice.value is None else code(setting), escape(when)]))
        yield f"{told} ({verified_words(findings)})."
        why = ESCAPED_COMMAND.sub(r"`\1`", escape(f"{advice.beyond} {advice.why}".strip()))
        yield f"{why} Holds for {escape(advice.holds_for)}."


def _section(section: Section) -> Iterator[str]:
    """The verification, a ladder or a schedule."""
    yield f"## {escape(section.title)}{f': {escape(section.tag)}' if section.tag else ''}"
    yield from (escape(text) for text in section.lead)
    if section.rows:
        yield table([escape(name) for name in section.header], [[escape(cell) for cell in row] for row in section.rows])
    if section.notes:
        yield "\n".join(f"- {escape(note)}" for note in section.notes)


def _glance(findings: Findings) -> Iterator[str]:
    """Speed-ups of all profiles, a column a level."""
    rows = view.glance(findings)
    if not rows:
        return
    header = ["condition", "profile", *map(str, view.glance_levels(findings)), "n", "verdict"]
    body = [
        [
            escape(row.condition),
            escape(row.profile),
            *(_glance_cell(cell) for cell in row.cells),
            row.n,
            f"{row.verdict} {row.turn}".strip(),
        ]
        for row in rows
    ]
    yield "## Speed-up by requests in flight"
    yield table(header, body, left=(0, 1, len(header) - 1))
    yield f"Bold: the whole 95 % interval lies above 1. {view.GLANCE_KEY}"


def _glance_cell(cell: view.GlanceCell) -> str:
    text = f"**{cell.text}**" if cell.tone == "gain" else cell.text
    return f"{text} {cell.spread}".strip()


def _condition(
    condition: ConditionFinding, findings: Findings, manifest: Manifest, picture: str | None
) -> Iterator[str]:
    """The speed-up chart, and a table per profile with where it turns."""
    yield f"## {escape(condition_words(condition.condition))}"
    if picture:
        yield f"![Speed-up over requests in flight; the table below holds the figures]({picture})"
    for profile in condition.profiles:
        depth = depth_words(manifest, profile.profile)
        yield f"### {escape(profile.profile)}{depth} against {escape(findings.against)}"
        turns = [
            f"- {escape(measure)}: {words}. {escape(sentence(text))}" for measure, words, text in view.turns(profile)
        ]
        if turns:
            yield "\n".join(turns)
        yield _levels(profile) if profile.levels else "No level was measured."
        if profile.levels:
            yield "\n".join(f"- {escape(line)}" for line in (f"{SPREAD_KEY}.", *penalties(profile.levels)))


def _levels(profile: ProfileFinding) -> str:
    """The profile's levels as a table."""
    columns = [*COLUMNS, CHECKS]
    rows = [[escape(column.text(level)) for column in columns] for level in profile.levels]
    return table([escape(column.header) for column in columns], rows, left=(len(columns) - 1,))


def _checks(findings: Findings) -> Iterator[str]:
    """The checks that spoke."""
    yield "## Checks"
    checks = view.check_views(findings)
    if not checks:
        yield "No check spoke: every cell carries its verdict."
        return
    yield "\n".join(
        f"- **{escape(item.check.name)}** ({'void' if item.check.voids else 'warning'}; {escape(item.where)}): "
        f"{escape(sentence(item.check.cause))} Cure: {escape(sentence(item.check.cure))}"
        for item in checks
    )


def _how(
    findings: Findings, manifest: Manifest, cells: Sequence[CellResult], servers: Sequence[ServerFacts]
) -> Iterator[str]:
    """How it was measured, and how to repeat it."""
    yield "## How it was measured"
    yield f"To repeat it: {code(view.repeat_command(manifest.argv))}"
    facts = [*view.head_facts(findings, manifest, ()), *view.how_facts(manifest, cells)]
    facts += [(f"Prompts, {name}", f"{digest} ({words})") for name, digest, words in view.prompt_hashes(cells)]
    # Head and body both name the engine and the repeats; the longer one wins.
    yield table(("what", "value"), [(escape(name), escape(value)) for name, value in dict(facts).items()], left=(0, 1))
    differing = [(name, values) for name, values, differ in view.effective_rows(servers) if differ]
    if differing:
        header = ["effective setting", *(escape(server.profile) for server in servers)]
        rows = [[escape(name), *map(escape, values)] for name, values in differing]
        yield "Where the servers differ:\n\n" + table(header, rows, left=range(len(header)))
    if findings.notes:
        yield "\n".join(f"- {escape(note)}" for note in findings.notes)
