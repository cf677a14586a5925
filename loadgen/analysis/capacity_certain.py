"""Whether the intervals carry what a plan's estimates say, and what would resolve it where they do not."""

import math
from collections.abc import Sequence

from loadgen.analysis.capacity_model import Fleet, LevelVerdict, Offer, Plan, SloFinding, Verdict
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


def fewest(fleet: Fleet | None) -> bool:
    """One working server and the spares: no further measurement makes them fewer."""
    return fleet is not None and fleet.gpus_least == fleet.gpus


def doubt_words(offer: Offer) -> str:
    """`ttft_p99 cannot be bounded by 3 to 37 requests a level: it takes 368, …`, or that the intervals hold it."""
    names = ", ".join(dict.fromkeys(finding.slo.name for finding in _open(offer)))
    short = _short(offer)
    if not short:
        return (
            f"the intervals of {names or 'the objectives'} hold their limits at every load; more requests a level "
            "(--repeats, a longer --window) would narrow them"
        )
    needed = max(finding.estimate.needed for finding in short)
    own = [finding.estimate.n for finding in short if finding.estimate.needed == needed]
    return (
        f"{_unbounded(short)} cannot be bounded by {_span(own)} requests a level: it takes {needed}, "
        f"so about {_times(short)}x the requests (--repeats, a longer --window) would tell"
    )


def resolve_words(unsure: Sequence[Offer]) -> str:
    """One sentence on what resolves all of these; empty where there are none."""
    if not unsure:
        return ""
    times = max((_times(short) for offer in unsure if (short := _short(offer))), default=0)
    start = f"About {times}x the" if times else "More"
    return f"{start} requests a level (--repeats, a longer --window) would resolve it."


def _open(offer: Offer) -> list[SloFinding]:
    return [f for level in _deciding(offer) for f in level.findings if f.verdict is Verdict.UNRESOLVED]


def _short(offer: Offer) -> list[SloFinding]:
    """Those that too few requests leave open."""
    return [finding for finding in _open(offer) if finding.estimate.high is None]


def _times(short: Sequence[SloFinding]) -> int:
    """How many times the requests of the fullest level bound the hardest quantile."""
    needed = max(finding.estimate.needed for finding in short)
    return max(2, math.ceil(needed / max(f.estimate.n for f in short if f.estimate.needed == needed)))


def further_words(chosen: Sequence[Offer]) -> str:
    """One sentence on what to measure where the levels, or the rates, end before the objectives do; else empty."""
    ended = [offer for offer in chosen if offer.capacity is not None and censored(offer) and not fewest(offer.fleet)]
    if not ended:
        return ""
    first = ended[0]
    if first.capacity is not None and first.capacity.basis == "open-loop":
        top = max(one.rate_per_s for one in first.opened)
        return f"Measured up to {top:.3g} requests/s: --rates {2 * top:.3g}/s would tell whether a server carries more."
    levels = sorted({level.level for offer in ended for level in offer.levels})
    more = ",".join(str(level) for level in (*levels, 2 * levels[-1]))
    return f"Measured up to level {levels[-1]}: --levels {more} would tell whether fewer GPUs do."


def _deciding(offer: Offer) -> list[LevelVerdict]:
    """The levels that hold by their estimates; the lowest one where none does."""
    top = offer.ceiling.by_estimate
    return [level for level in offer.levels if top is not None and level.level <= top] or list(offer.levels[:1])


def _unbounded(findings: Sequence[SloFinding]) -> str:
    return " and ".join(dict.fromkeys(f.slo.name for f in findings))


def _span(counts: Sequence[int]) -> str:
    return f"{min(counts)} to {max(counts)}" if min(counts) < max(counts) else str(counts[0])
