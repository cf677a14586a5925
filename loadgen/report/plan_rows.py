"""A plan as plain rows of text: terminal, Markdown and page lay them out."""

from collections.abc import Sequence
from dataclasses import dataclass

from loadgen.analysis.capacity_certain import censored, fewest
from loadgen.analysis.capacity_model import (
    Capacity,
    Ceiling,
    Fleet,
    LevelVerdict,
    Offer,
    OpenVerdict,
    Plan,
    Pool,
    QuantileEstimate,
    SloFinding,
)
from loadgen.analysis.capacity_words import demand_words, interval_words
from loadgen.report.words import clean, condition_words, fixed, milliseconds, number, percent

Table = tuple[list[str], list[list[str]]]
"""(header, rows)."""


@dataclass(frozen=True)
class Group:
    """One condition's offers."""

    title: str
    offers: tuple[Offer, ...]


def groups(plan: Plan) -> list[Group]:
    """The offers by condition, in their order."""
    conditions = list(dict.fromkeys(offer.condition for offer in plan.offers))
    return [Group(condition_words(c), tuple(o for o in plan.offers if o.condition == c)) for c in conditions]


def quantile_words(estimate: QuantileEstimate) -> str:
    """`412 ms (380–455, n = 520)`; an end that the sample cannot bound is `?`."""
    low = "?" if estimate.low is None else milliseconds(estimate.low)
    high = "?" if estimate.high is None else milliseconds(estimate.high)
    return f"{milliseconds(estimate.value)} ms ({low}–{high}, n = {estimate.n})"


def finding_words(finding: SloFinding) -> str:
    """The quantile and what it says of its limit."""
    word = finding.verdict.value
    if finding.estimate.high is None and finding.verdict.value == "unresolved":
        word = f"unresolved, needs n = {finding.estimate.needed}"
    return f"{quantile_words(finding.estimate)}: {word}"


def ceiling_words(ceiling: Ceiling) -> str:
    """`8 (sure: 4)`, `32+ (unsure)` at the highest measured level; `none`."""
    if ceiling.by_estimate is None:
        return "none"
    more = "+" if ceiling.open_ended else ""
    if ceiling.surely == ceiling.by_estimate:
        return f"{ceiling.by_estimate:g}{more}"
    return f"{ceiling.by_estimate:g}{more} ({f'sure: {ceiling.surely:g}' if ceiling.surely else 'unsure'})"


def offer_table(plan: Plan, offers: Sequence[Offer]) -> Table:
    """One row per setting: what it carries, its fleet, and the same with weaker acceptance."""
    demand = plan.demand
    money = plan.hardware.gpu_hour is not None
    power = plan.hardware.gpu_watts is not None
    header = ["setting", "in flight"]
    if demand is not None:
        unit = "users" if demand.users is not None else "req/s"
        header += [f"{unit} / server", "servers", "GPUs", f"{unit} / GPU"]
    header += ["cost / 1M"] * money + ["kWh / 1M"] * power + ["if acceptance −1/3"]
    rows = []
    for offer in offers:
        row = [clean(offer.setting), ceiling_words(offer.ceiling)]
        if demand is not None:
            row += _demand_cells(offer)
        fleet = offer.fleet
        row += [fixed(fleet.cost_per_million_tokens, 2) if fleet else "n/a"] * money
        row += [number(fleet.kwh_per_million_tokens) if fleet else "n/a"] * power
        rows.append([*row, _weaker_words(offer)])
    return header, rows


def _demand_cells(offer: Offer) -> list[str]:
    """Per server, servers (bare, with headroom, with spares), GPUs, per GPU."""
    capacity, fleet = offer.capacity, offer.fleet
    if capacity is None or capacity.per_server is None:
        return ["none", "n/a", "n/a", "n/a"]
    servers = f"{fleet.servers} / {fleet.with_headroom} / {fleet.with_spares}" if fleet else "n/a"
    return [
        _carried(capacity) + (interval_words(capacity) if capacity.surely is not None else " (unsure)"),
        servers,
        _gpus(offer.fleet, bounded=censored(offer)),
        number(fleet.per_gpu) if fleet else "n/a",
    ]


def _gpus(fleet: Fleet | None, *, bounded: bool) -> str:
    """`4`; `≤ 4` where a server may carry more than was measured, but for one working server and its spares."""
    if fleet is None:
        return "n/a"
    return f"≤ {fleet.gpus}" if bounded and not fewest(fleet) else str(fleet.gpus)


def _carried(capacity: Capacity) -> str:
    """`84`, `84+` where the measured levels end first; measured rates are marked."""
    more = "+" if capacity.limited_by == "measured levels" else ""
    value = f"{capacity.per_server:.0f}" if capacity.unit == "users" else number(capacity.per_server)
    return f"{value}{more}{' measured' if capacity.basis == 'open-loop' else ''}"


def _weaker_words(offer: Offer) -> str:
    if offer.weaker is None:
        return "–"
    weak = offer.weaker
    if offer.capacity is None:
        return ceiling_words(weak.ceiling)
    if weak.capacity is None or weak.capacity.per_server is None or weak.fleet is None:
        return "none"
    bounded = weak.capacity.limited_by == "measured levels"
    return f"{_carried(weak.capacity)}, {_gpus(weak.fleet, bounded=bounded)} GPUs"


MEANINGS = (
    "in flight: the highest closed-loop level such that it and all lower ones keep the objectives",
    "+: no higher level was measured; (a to b): by the 95 % intervals; unsure: the intervals do not say so yet",
    "servers: for the demand alone / with headroom / with spares; ≤: fewer GPUs may do, as + says",
)


def level_table(plan: Plan, offer: Offer) -> Table:
    """One row per measured level: rate, goodput, and each objective."""
    header = ["in flight", "requests/s", "tokens/s", "goodput/s", *(slo.name for slo in plan.slos), "verdict"]
    return header, [_level_row(plan, level) for level in offer.levels]


def _level_row(plan: Plan, level: LevelVerdict) -> list[str]:
    by_name = {finding.slo.name: finding for finding in level.findings}
    goodput = f"{number(level.goodput_per_s)} ({percent(level.good_share)})"
    cells = [finding_words(by_name[s.name]) if s.name in by_name else "n/a" for s in plan.slos]
    return [
        str(level.level),
        number(level.requests_per_s),
        number(level.tokens_per_s),
        goodput,
        *cells,
        level.verdict.value,
    ]


def open_table(plan: Plan, offer: Offer) -> Table:
    """One row per measured open-loop rate; times from the scheduled start."""
    header = ["rate/s", "reached/s", "in flight", "goodput/s", *(slo.name for slo in plan.slos), "verdict"]
    return header, [_open_row(plan, one) for one in offer.opened]


def _open_row(plan: Plan, one: OpenVerdict) -> list[str]:
    by_name = {finding.slo.name: finding for finding in one.findings}
    cells = [finding_words(by_name[s.name]) if s.name in by_name else "n/a" for s in plan.slos]
    return [
        number(one.rate_per_s),
        number(one.requests_per_s),
        number(one.in_flight),
        number(one.goodput_per_s),
        *cells,
        one.verdict.value,
    ]


def pool_table(pools: Sequence[Pool]) -> Table:
    """One row per pool of a mix."""
    header = ["pool", "workloads", "share", "per server", "GPUs"]
    rows = [
        [
            clean(pool.setting),
            clean(", ".join(pool.workloads)),
            percent(pool.share),
            number(pool.per_server),
            _gpus(pool.fleet, bounded=pool.open_ended),
        ]
        for pool in pools
    ]
    return header, rows


def advice_lines(plan: Plan) -> list[tuple[str, str, str]]:
    """(condition, setting, reason) per condition."""
    return [(condition_words(a.condition), clean(a.setting or "none"), clean(a.reason)) for a in plan.advice]


def facts(plan: Plan) -> list[tuple[str, str]]:
    """What was asked and on what it rests."""
    hardware = plan.hardware
    rows = [
        ("Objectives", ", ".join(f"{slo.name} ≤ {milliseconds(slo.limit_s)} ms" for slo in plan.slos)),
        ("Demand", demand_words(plan.demand)),
        ("Headroom and spares", f"{percent(hardware.headroom)}, {hardware.spares} spare server(s)"),
        ("GPUs per server", str(hardware.gpus_per_server)),
        ("Model", clean(plan.model or "unknown")),
        ("vLLM", clean(plan.vllm_version or "unknown")),
        ("Run", clean(plan.run_id)),
    ]
    if hardware.gpu_hour is not None:
        rows.append(("Price of a GPU hour", f"{hardware.gpu_hour:g}"))
    if hardware.gpu_watts is not None:
        rows.append(("Power of a GPU", f"{hardware.gpu_watts:g} W, as given"))
    return rows
