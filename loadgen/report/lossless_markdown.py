"""A same-quality test for a pull request or a wiki."""

from collections.abc import Sequence

from loadgen.analysis.lossless_model import LosslessFinding
from loadgen.report import lossless_rows as rows
from loadgen.report import view
from loadgen.report.lossless_json import LosslessAbout
from loadgen.report.lossless_text import sentence
from loadgen.report.markdown import code, escape, table
from loadgen.report.plan_rows import Table


def render_lossless_markdown(finding: LosslessFinding, about: LosslessAbout) -> str:
    """The whole report as Markdown text."""
    out = [f"# {escape(sentence(finding))}"]
    if about.simulated:
        out.append("**SIMULATED**: these answers come from a simulator, not from a model.")
    out.append(_table((["", ""], [list(fact) for fact in rows.head_facts(finding, about)]), (0, 1)))
    out.append(
        _table(
            (["part", "verdict", "what decides"], [[p.where, p.quality, p.decides] for p in rows.parts(finding)]),
            (0, 1, 2),
        )
    )
    if finding.greedy is not None:
        out += ["## Gaps where greedy answers part", escape(rows.tolerance_words(finding.greedy))]
        out.append(_table(rows.gap_table(finding)))
        if finding.greedy.hard_divergences:
            out += ["Beyond the tolerance, the widest first:", _table(rows.hard_table(finding.greedy))]
    for sampling in finding.sampling:
        out += [f"## Sampled tokens at temperature {sampling.temperature:g}", escape(rows.sampling_words(sampling))]
        if sampling.places:
            out.append(_table(rows.position_table(sampling, about.plan.k)))
    out += ["## Tokens from accepted drafts", _table(rows.drafted_table(finding))]
    out += ["## Equal token for token", escape(rows.EQUALITY_WORDS), _table(rows.equality_table(finding))]
    out += ["## How it was tested", _table((["", ""], [list(fact) for fact in rows.how_facts(finding, about)]), (0, 1))]
    out.append(f"Again: {code(view.repeat_command(about.argv))}")
    return "\n\n".join(out) + "\n"


def _table(found: Table, left: Sequence[int] = (0,)) -> str:
    header, body = found
    return table([escape(cell) for cell in header], [[escape(cell) for cell in row] for row in body], left)
