"""plan.html: the plan as one page that opens offline, in the report's style."""

from collections.abc import Sequence
from dataclasses import dataclass

from loadgen.analysis.capacity_model import Offer, Plan
from loadgen.report import plan_rows
from loadgen.report.chart import Chart
from loadgen.report.html import render_page
from loadgen.report.plan_charts import plan_charts
from loadgen.report.plan_rows import Table


@dataclass(frozen=True)
class OfferView:
    """One setting's tables."""

    title: str
    levels: Table
    opened: Table | None


@dataclass(frozen=True)
class GroupView:
    """One condition's section."""

    anchor: str
    title: str
    offers: Table
    charts: Sequence[Chart]
    details: Sequence[OfferView]


def render_plan_html(plan: Plan) -> str:
    """The whole page as text; it asks the network for nothing."""
    views = [_group(plan, i, group) for i, group in enumerate(plan_rows.groups(plan), 1)]
    figures = {f"{view.anchor}-{chart.key}": chart.figure for view in views for chart in view.charts}
    mix = plan.mix
    return render_page(
        "plan.html.j2",
        figures,
        plan=plan,
        facts=plan_rows.facts(plan),
        advice=plan_rows.advice_lines(plan),
        pools=plan_rows.pool_table(mix.pools) if mix else None,
        single=plan_rows.pool_table(mix.single) if mix and mix.single else None,
        groups=views,
        meanings=plan_rows.MEANINGS,
    )


def _group(plan: Plan, number: int, group: plan_rows.Group) -> GroupView:
    return GroupView(
        anchor=f"g{number}",
        title=group.title,
        offers=plan_rows.offer_table(plan, group.offers),
        charts=plan_charts(plan, group.offers),
        details=[_offer(plan, offer) for offer in group.offers],
    )


def _offer(plan: Plan, offer: Offer) -> OfferView:
    opened = plan_rows.open_table(plan, offer) if offer.opened else None
    return OfferView(f"{offer.setting} ({offer.detail})", plan_rows.level_table(plan, offer), opened)
