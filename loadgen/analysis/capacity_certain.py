"""Whether the intervals carry what a plan's estimates say, and what would resolve it where they do not."""

import math
from collections.abc import Sequence

from loadgen.analysis.capacity_model import LevelVerdict, Offer, Plan, SloFinding, Verdict
from loadgen.analysis.capacity_search import LEVELS


def is_sure(offer: Offer) -> bool:
    """The offer meets the objectives at some load by the whole interval of each of them."""
    if offer.capacity is not None:
        return offer.capacity.surely is not None
    return offer.ceiling.surely is not None


def is_resolved(plan: Plan) -> bool:
    """Every answer of the plan stands by its intervals; with a mix its pools do."""
    if plan.mix is not None:
        return plan.mix.sure
    return bool(plan.offers) and all(one.sure for one in plan.advice)


def surely_none(offers: Sequence[Offer]) -> bool:
    """Every setting misses an objective by its whole interval at its lowest load."""
    lowest = [offer.levels[0].verdict if offer.levels else Verdict.UNRESOLVED for offer in offers]
    measured = [offer.opened[0].verdict if offer.opened else Verdict.UNRESOLVED for offer in offers]
    return all(Verdict.MISSED in pair for pair in zip(lowest, measured, strict=True))


def censored(offer: Offer) -> bool:
    """The highest measured load still meets the objectives, so that more may, too."""
    if offer.capacity is not None:
        return offer.capacity.limited_by == LEVELS
    return offer.ceiling.open_ended


def doubt_words(offer: Offer) -> str:
    """`ttft_p99 cannot be bounded by 3 to 37 requests a level: it takes 368, …`, or that the intervals hold it."""
    levels = _deciding(offer)
    open_findings = [f for level in levels for f in level.findings if f.verdict is Verdict.UNRESOLVED]
    names = ", ".join(dict.fromkeys(f.slo.name for f in open_findings))
    short = [f for f in open_findings if f.estimate.high is None]
    if not short:
        return (
            f"the intervals of {names or 'the objectives'} hold their limits at every load; more requests a level "
            "(--repeats, a longer --window) would narrow them"
        )
    worst = max(short, key=lambda f: f.estimate.needed)
    own = [f.estimate.n for f in short if f.slo == worst.slo]
    times = max(2, math.ceil(worst.estimate.needed / max(own)))
    return (
        f"{_unbounded(short)} cannot be bounded by {_span(own)} requests a level: it takes {worst.estimate.needed}, "
        f"so about {times}x the requests (--repeats, a longer --window) would tell"
    )


def further_words(offer: Offer) -> str:
    """What to measure where the levels, or the rates, end before the objectives do; empty where they do not."""
    if not censored(offer):
        return ""
    if offer.capacity is not None and offer.capacity.basis == "open-loop":
        top = max(one.rate_per_s for one in offer.opened)
        return f"measured up to {top:.3g} requests/s: --rates {2 * top:.3g}/s would tell"
    levels = [level.level for level in offer.levels]
    more = ",".join(str(level) for level in (*levels, 2 * levels[-1]))
    return f"measured up to level {levels[-1]}: --levels {more} would tell"


def _deciding(offer: Offer) -> list[LevelVerdict]:
    """The levels that hold by their estimates; the lowest one where none does."""
    top = offer.ceiling.by_estimate
    return [level for level in offer.levels if top is not None and level.level <= top] or list(offer.levels[:1])


def _unbounded(findings: Sequence[SloFinding]) -> str:
    return " and ".join(dict.fromkeys(f.slo.name for f in findings))


def _span(counts: Sequence[int]) -> str:
    return f"{min(counts)} to {max(counts)}" if min(counts) < max(counts) else str(counts[0])
