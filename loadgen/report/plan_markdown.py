"""plan.md: the plan for a pull request or a wiki."""

from loadgen.analysis.capacity_model import Offer, Plan
from loadgen.report import plan_rows
from loadgen.report.markdown import escape, table
from loadgen.report.plan_rows import Table
from loadgen.report.words import unmarked


def render_plan_markdown(plan: Plan) -> str:
    """The whole plan as Markdown text."""
    parts = [f"# {escape(unmarked(plan.answer) if plan.simulated else plan.answer)}"]
    if plan.simulated:
        parts.append("**SIMULATED**: these figures come from a simulator, not from hardware.")
    parts.append(_table((["asked", ""], [list(fact) for fact in plan_rows.facts(plan)])))
    if plan.mix:
        parts += ["## Pools for the mix", escape(plan.mix.sentence), _table(plan_rows.pool_table(plan.mix.pools))]
        if plan.mix.single:
            parts += ["One pool for all would take:", _table(plan_rows.pool_table(plan.mix.single))]
    parts.append("## Setting by workload")
    parts += [
        f"- **{escape(s)}** for {escape(where)}: {escape(why)}." for where, s, why in plan_rows.advice_lines(plan)
    ]
    for group in plan_rows.groups(plan):
        parts += [f"## {escape(group.title)}", _table(plan_rows.offer_table(plan, group.offers))]
        for offer in group.offers:
            parts += _levels(plan, offer)
    parts.append("\n".join(f"- {escape(meaning)}" for meaning in plan_rows.MEANINGS))
    if plan.notes:
        parts += ["## Mind", "\n".join(f"- {escape(note)}" for note in plan.notes)]
    return "\n\n".join(parts) + "\n"


def _levels(plan: Plan, offer: Offer) -> list[str]:
    parts = [f"### {escape(offer.setting)} ({escape(offer.detail)})", _table(plan_rows.level_table(plan, offer))]
    if offer.opened:
        parts += ["Open loop, from the scheduled start:", _table(plan_rows.open_table(plan, offer))]
    return parts


def _table(rows: Table) -> str:
    header, body = rows
    return table([escape(cell) for cell in header], [[escape(cell) for cell in row] for row in body])
