"""report.html: one file that opens offline."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from loadgen.analysis.model import Findings
from loadgen.report import view
from loadgen.report.axes_sections import all_sections
from loadgen.report.columns import CHECKS, COLUMNS, MORE_COLUMNS, SPREAD_KEY, STEP_TIME, penalties
from loadgen.report.detail import Detail
from loadgen.report.figures import NO_DETAIL
from loadgen.report.schedule_sections import verified_words
from loadgen.report.summary import dumps
from loadgen.report.title import short_title
from loadgen.report.words import advice_words, clean, headline, headline_caveat, level_state, sentence, unmarked
from loadgen.store.model import CellResult, Manifest, ServerFacts

# What could end a script element or a JavaScript line from inside a JSON string (C102).
UNSAFE_IN_SCRIPT = re.compile("[<>&\u2028\u2029]")
COMMAND = re.compile("`(loadgen [a-z]+)`")
OPTION = re.compile(r"--[a-z][a-z-]*(?: \d[\d,.%]*\b)?")


def embed_json(value: object) -> Markup:
    """JSON text that may stand in a script element: < > & and the line separators are escaped (C102)."""
    text = UNSAFE_IN_SCRIPT.sub(lambda found: f"\\u{ord(found.group()):04x}", dumps(value, indent=None))
    return Markup(text)  # noqa: S704  # escaped just above, so that nothing in it can end the element


def render_html(
    findings: Findings,
    manifest: Manifest,
    cells: Sequence[CellResult] = (),
    servers: Sequence[ServerFacts] = (),
    detail: Detail = NO_DETAIL,
) -> str:
    """The whole page as text; it asks the network for nothing."""
    conditions = view.condition_views(findings, manifest, cells, detail)
    over_time = view.run_charts(findings, cells, detail)
    figures = {f"{c.anchor}-{chart.key}": chart.figure for c in conditions for chart in c.charts}
    figures |= {f"run-{chart.key}": chart.figure for chart in over_time}
    advice = findings.recommendation
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            findings=findings,
            manifest=manifest,
            servers=servers,
            answer=headline(findings),
            title=short_title(headline(findings)),
            caveat=headline_caveat(findings),
            facts=view.head_facts(findings, manifest, cells),
            levels=view.glance_levels(findings),
            glance=view.glance(findings),
            glance_key=view.GLANCE_KEY,
            spread_key=SPREAD_KEY,
            penalties=penalties,
            advice=advice,
            sections=all_sections(findings),
            verified=verified_words(findings),
            advice_words=advice_words(findings),
            conditions=conditions,
            lead=view.LEAD_CHARTS,
            jumps=view.jumps(findings, conditions, time=bool(over_time or detail.problem)),
            columns=[*COLUMNS, STEP_TIME, CHECKS],
            more_columns=MORE_COLUMNS,
            checks=view.check_views(findings),
            how=view.how_facts(manifest, cells),
            command=view.repeat_command(manifest.argv),
            settings=dumps(manifest.settings) if manifest.settings else "",
            server_commands=[(server, view.command(server.command)) for server in servers],
            hashes=view.prompt_hashes(cells),
            effective=view.effective_rows(servers),
            over_time=over_time,
            problem=detail.problem,
            figures=figures,
            style=_asset("templates", "report.css"),
            script=_asset("templates", "report.js"),
            plotly=_asset("assets", "plotly-basic.min.js"),
        )
    )


def render_page(template: str, figures: Mapping[str, object], **values: object) -> str:
    """A page of another command in the report's style; `figures` maps each chart's place to its Plotly figure."""
    return (
        _environment()
        .get_template(template)
        .render(
            figures=figures,
            style=_asset("templates", "report.css"),
            script=_asset("templates", "report.js"),
            plotly=_asset("assets", "plotly-basic.min.js"),
            **values,
        )
    )


@lru_cache(maxsize=1)
def _environment() -> Environment:
    """Jinja with autoescape for every template."""
    loader = PackageLoader("loadgen.report", "templates")
    environment = Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    environment.filters |= {
        "clean": clean,
        "sentence": sentence,
        "unmarked": unmarked,
        "commands": _commands,
        "options": _options,
        "embed_json": embed_json,
        "svg": _svg,
    }
    environment.globals["level_state"] = level_state
    return environment


def _commands(text: object) -> Markup:
    """The text with our own commands, `loadgen verify`, as code."""
    escaped = str(escape(clean(text)))
    escaped = OPTION.sub(r'<span class="option">\g<0></span>', escaped)
    return Markup(COMMAND.sub(r"<code>\1</code>", escaped))  # noqa: S704  # escaped; the pattern: letters and a blank


def _options(text: object) -> Markup:
    """The text in which an option stays on one line with its value: `--levels 32`."""
    escaped = str(escape(clean(text)))
    return Markup(OPTION.sub(r'<span class="option">\g<0></span>', escaped))  # noqa: S704  # escaped just above


def _svg(text: str) -> Markup:
    """Our own drawing, inlined."""
    return Markup(text)  # noqa: S704  # every text in it is escaped where it is drawn (svg.py)


@lru_cache(maxsize=8)
def _asset(folder: str, name: str) -> Markup:
    """One of our own files, to be inlined as it stands."""
    text = files("loadgen.report").joinpath(folder, name).read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704  # shipped with the package, never from outside
