"""Which setting for which workload, and which pools for a mix."""

import math
from collections.abc import Sequence

from loadgen.analysis.capacity_fleet import fleet_of, wanted
from loadgen.analysis.capacity_model import SCHEDULE_NAME, Advice, MixPlan, Offer, Pool
from loadgen.analysis.capacity_offer import Wish, share_of
from loadgen.store.model import Condition

NOISE = 0.02
"""A setting must carry 2 % more than the plainer one: less is no reason to change a server."""
COPIES = 1.5
"""Tokens per step from which on a workload repeats enough to be worth drafting in words, too."""


def strength(offer: Offer) -> float:
    """What the offer carries in the demand's unit, else requests/s at its ceiling; 0 for nothing."""
    if offer.capacity is not None:
        return offer.capacity.per_server or 0.0
    reached = [v.requests_per_s for v in offer.levels if v.level == offer.ceiling.by_estimate]
    return max(reached, default=0.0)


def best_offer(offers: Sequence[Offer], against: str) -> Offer | None:
    """The strongest; the baseline where nothing beats it by more than noise; None if none carries anything."""
    able = [offer for offer in offers if strength(offer) > 0]
    if not able:
        return None
    best = max(able, key=strength)
    plain = next((offer for offer in able if offer.setting == against), None)
    return plain if plain is not None and strength(best) <= strength(plain) * (1 + NOISE) else best


def advise(condition: Condition, offers: Sequence[Offer], against: str, tokens_per_step: dict[str, float]) -> Advice:
    """The setting for one condition with its reason, from the figures of the run."""
    best = best_offer(offers, against)
    if best is None:
        return Advice(condition, None, "no setting meets the objectives at any measured load; ask for less, or measure")
    plain = next((offer for offer in offers if offer.setting == against), None)
    gain = strength(best) / strength(plain) if plain is not None and strength(plain) > 0 else math.inf
    if best is plain:
        return Advice(condition, best.setting, _why_plain(best, offers, tokens_per_step))
    more = f"it carries {gain:.2f}x of {against}" if math.isfinite(gain) else f"{against} meets the objectives nowhere"
    return Advice(condition, best.setting, f"{more}{_why_drafting(tokens_per_step.get(best.setting))}")


def _why_plain(plain: Offer, offers: Sequence[Offer], tokens_per_step: dict[str, float]) -> str:
    """Why nothing beats the server without speculation."""
    rivals = [offer for offer in offers if offer is not plain and offer.setting != SCHEDULE_NAME]
    if not rivals:
        return "nothing else was measured"
    rival = max(rivals, key=strength)
    text = f"{rival.setting} carries {strength(rival) / strength(plain):.2f}x of it"
    gained = tokens_per_step.get(rival.setting)
    if gained is None:
        return text
    if gained < COPIES:
        return f"{text}: {gained:.2f} tokens per step, so the text is new and drafts seldom fit"
    return (
        f"{text}: the text repeats ({gained:.2f} tokens per step), but at such load verifying costs more than it saves"
    )


def _why_drafting(gained: float | None) -> str:
    if gained is None:
        return ""
    word = "the text repeats what stands in its context" if gained >= COPIES else "even few accepted drafts pay here"
    return f": {gained:.2f} tokens per step, so {word}"


def plan_mix(
    conditions: Sequence[tuple[Condition, float, Sequence[Offer]]], wish: Wish, against: str
) -> MixPlan | None:
    """Pools for (condition, share, offers): each workload's best setting, against one setting for all.

    A pool that serves several workloads carries their shares' harmonic mean: a request of each takes 1 / capacity of a
    server (exact for service in turns, an estimate for batches). None without a demand, or if a workload has none.
    """
    if wish.demand is None:
        return None
    chosen: dict[str, list[tuple[Condition, float, Offer]]] = {}
    for condition, share, offers in conditions:
        best = best_offer(offers, against)
        if best is None:
            return None
        chosen.setdefault(best.setting, []).append((condition, share, best))
    pools = tuple(_pool(name, members, wish) for name, members in sorted(chosen.items()))
    names = sorted({offer.setting for _, _, offers in conditions for offer in offers})
    singles = []
    for name in names:
        found = [(c, s, o) for c, s, offers in conditions for o in offers if o.setting == name and strength(o) > 0]
        if len(found) == len(conditions):
            singles.append(_pool(name, found, wish))
    single = tuple(sorted(singles, key=lambda pool: (pool.fleet.gpus, pool.setting != against)))
    gpus = sum(pool.fleet.gpus for pool in pools)
    return MixPlan(pools, gpus, single, _sentence(pools, gpus, single))


def _pool(name: str, members: Sequence[tuple[Condition, float, Offer]], wish: Wish) -> Pool:
    total = math.fsum(share for _, share, _ in members)
    per_server = total / math.fsum(share / strength(offer) for _, share, offer in members)
    if wish.demand is None:
        raise ValueError("a pool needs a demand")
    fleet = fleet_of(wanted(share_of(wish.demand, total)), per_server, wish.hardware, None)
    return Pool(name, tuple(condition.workload for condition, _, _ in members), total, per_server, fleet)


def _sentence(pools: Sequence[Pool], gpus: int, single: Sequence[Pool]) -> str:
    parts = [f"{pool.setting} for {' and '.join(pool.workloads)}: {pool.fleet.gpus} GPUs" for pool in pools]
    text = f"{'; '.join(parts)} ({gpus} in all)"
    if not single:
        return f"Pools by workload: {text}; no one setting meets the objectives for all."
    one = single[0]
    if len(pools) > 1 and one.fleet.gpus <= gpus:
        return (
            f"One pool with {one.setting} for all takes {one.fleet.gpus} GPUs; pools by workload would take {gpus} "
            f"({'; '.join(parts)}), for every pool keeps its own spare."
        )
    other = "" if len(pools) == 1 else f"; one pool with {one.setting} for all would take {one.fleet.gpus}"
    return f"{'Pools by workload' if len(pools) > 1 else 'One pool'}: {text}{other}."
