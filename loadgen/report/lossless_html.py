"""A same-quality test as one page that opens offline, in the report's style."""

from dataclasses import dataclass

from loadgen.analysis.lossless_model import LosslessFinding, SamplingFinding
from loadgen.report import lossless_rows as rows
from loadgen.report import view
from loadgen.report.chart import Chart
from loadgen.report.html import render_page
from loadgen.report.lossless_charts import charts
from loadgen.report.lossless_json import LosslessAbout
from loadgen.report.lossless_text import sentence
from loadgen.report.plan_rows import Table


@dataclass(frozen=True)
class SamplingView:
    """One temperature's section."""

    anchor: str
    title: str
    words: str
    by_position: Table
    places: Table
    control: Table
    charts: tuple[Chart, ...]


def render_lossless_html(finding: LosslessFinding, about: LosslessAbout) -> str:
    """The whole page as text; it asks the network for nothing."""
    drawn = charts(finding)
    greedy = finding.greedy
    sampled = [_sampling(i, s, about.plan.k, drawn) for i, s in enumerate(finding.sampling, 1)]
    figures = {f"s{i}-{c.key}": c.figure for i, s in enumerate(sampled, 1) for c in s.charts}
    if "greedy" in drawn:
        figures["greedy-gaps"] = drawn["greedy"].figure
    servers = list(about.servers.values())
    return render_page(
        "lossless.html.j2",
        figures,
        about=about,
        answer=sentence(finding),
        quality=finding.quality,
        tone=rows.TONES[finding.quality],
        facts=rows.head_facts(finding, about),
        parts=rows.parts(finding),
        gaps=rows.gap_table(finding),
        gap_charts=[drawn["greedy"]] if "greedy" in drawn else [],
        tolerance=rows.tolerance_words(greedy) if greedy else "",
        hard=rows.hard_table(greedy) if greedy and greedy.hard_divergences else None,
        hard_count=len(greedy.hard_divergences) if greedy else 0,
        sampled=sampled,
        drafted=rows.drafted_table(finding),
        equality_words=rows.EQUALITY_WORDS,
        equality=rows.equality_table(finding),
        how=rows.how_facts(finding, about),
        command=view.repeat_command(about.argv),
        server_commands=[(server, view.command(server.command)) for server in servers],
        servers=servers,
        effective=view.effective_rows(servers),
    )


def _sampling(number: int, sampling: SamplingFinding, k: int, drawn: dict[str, Chart]) -> SamplingView:
    chart = drawn.get(f"{sampling.temperature:g}")
    return SamplingView(
        anchor=f"s{number}",
        title=f"Sampled tokens at temperature {sampling.temperature:g}",
        words=rows.sampling_words(sampling),
        by_position=rows.position_table(sampling, k),
        places=rows.place_table(sampling.places),
        control=rows.place_table(sampling.control),
        charts=(chart,) if chart else (),
    )
