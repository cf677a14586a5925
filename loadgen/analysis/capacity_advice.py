"""Which setting for which workload, and which pools for a mix."""

import math
from collections.abc import Sequence

from loadgen.analysis.capacity_certain import censored, doubt_words, fewest, is_sure, surely_none
from loadgen.analysis.capacity_fleet import fleet_of, wanted, with_range
from loadgen.analysis.capacity_model import SCHEDULE_NAME, Advice, MixPlan, Offer, Pool
from loadgen.analysis.capacity_offer import Wish, share_of
from loadgen.analysis.capacity_words import gpu_words, gpus
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
        return _no_setting(condition, offers)
    plain = next((offer for offer in offers if offer.setting == against), None)
    gain = strength(best) / strength(plain) if plain is not None and strength(plain) > 0 else math.inf
    sure, doubt = is_sure(best), "" if is_sure(best) else doubt_words(best)
    by = "" if sure else "by estimates only, "
    if best is plain:
        return Advice(condition, best.setting, by + _why_plain(best, offers, tokens_per_step), sure, doubt)
    more = f"it carries {gain:.2f}x of {against}" if math.isfinite(gain) else f"{against} meets the objectives nowhere"
    if plain is not None and math.isfinite(gain) and alike(best, plain):
        more += ", within the intervals of both"
    return Advice(condition, best.setting, f"{by}{more}{_why_drafting(tokens_per_step.get(best.setting))}", sure, doubt)


def _no_setting(condition: Condition, offers: Sequence[Offer]) -> Advice:
    why = "no setting meets the objectives at any measured load"
    if surely_none(offers):
        return Advice(condition, None, f"{why}; ask for less, or measure")
    doubt = next((doubt_words(o) for o in offers if not surely_none([o])), "nothing was measured")
    return Advice(condition, None, f"{why} by its estimates, which the intervals leave open", sure=False, doubt=doubt)


def alike(one: Offer, other: Offer) -> bool:
    """What they carry differs by less than noise, or their intervals overlap; without intervals only the former."""
    first, second = sorted((one, other), key=strength)
    if strength(first) >= strength(second) * (1 - NOISE):
        return True
    low, high = first.capacity, second.capacity
    return low is not None and high is not None and high.surely is not None and high.surely <= (low.at_most or 0.0)


def _why_plain(plain: Offer, offers: Sequence[Offer], tokens_per_step: dict[str, float]) -> str:
    """Why nothing beats the server without speculation."""
    rivals = [offer for offer in offers if offer is not plain and offer.setting != SCHEDULE_NAME]
    if not rivals:
        return "nothing else was measured"
    rival = max(rivals, key=strength)
    text = f"{rival.setting} carries {strength(rival) / strength(plain):.2f}x of it"
    if alike(rival, plain):
        return f"{text}, the same within noise, so that nothing is gained by drafting"
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
    total = sum(pool.fleet.gpus for pool in pools)
    told = [offer for members in chosen.values() for _, _, offer in members]
    if single and _one_for_all(pools, total, single[0]):
        told = [o for _, _, offers in conditions for o in offers if o.setting == single[0].setting]
    doubts = [doubt_words(offer) for offer in told if not is_sure(offer)]
    sentence = _sentence(pools, total, single)
    if doubts:
        sentence = f"Unresolved, by estimates only: {sentence[:1].lower()}{sentence[1:-1]}; but {doubts[0]}."
    return MixPlan(pools, total, single, sentence, not doubts)


def _pool(name: str, members: Sequence[tuple[Condition, float, Offer]], wish: Wish) -> Pool:
    total = math.fsum(share for _, share, _ in members)
    per_server = total / math.fsum(share / strength(offer) for _, share, offer in members)
    surely = _together(members, [o.capacity.surely if o.capacity else None for _, _, o in members])
    at_most = _together(members, [o.capacity.at_most if o.capacity else None for _, _, o in members])
    if wish.demand is None:
        raise ValueError("a pool needs a demand")
    load = wanted(share_of(wish.demand, total))
    bare = fleet_of(load, per_server, wish.hardware, None)
    fleet = with_range(bare, load, (per_server, surely, at_most), wish.hardware)
    workloads = tuple(condition.workload for condition, _, _ in members)
    return Pool(name, workloads, total, per_server, fleet, any(censored(offer) for _, _, offer in members))


def _together(members: Sequence[tuple[Condition, float, Offer]], carried: Sequence[float | None]) -> float | None:
    """The shares' harmonic mean; None where one is not known."""
    known = [value for value in carried if value]
    if len(known) < len(members):
        return None
    total = math.fsum(share for _, share, _ in members)
    return total / math.fsum(share / value for (_, share, _), value in zip(members, known, strict=True))


def _one_for_all(pools: Sequence[Pool], total: int, one: Pool) -> bool:
    """One pool for all is what is advised."""
    return len(pools) > 1 and one.fleet.gpus <= total


def _gpus_of(pool: Pool) -> str:
    return gpu_words(pool.fleet, at_most=pool.open_ended)


def _sentence(pools: Sequence[Pool], total: int, single: Sequence[Pool]) -> str:
    parts = [f"{pool.setting} for {' and '.join(pool.workloads)}: {_gpus_of(pool)}" for pool in pools]
    more = " or fewer" if any(pool.open_ended and not fewest(pool.fleet) for pool in pools) else ""
    text = f"{'; '.join(parts)} ({total}{more} in all)" if len(pools) > 1 else parts[0]
    if not single:
        return f"Pools by workload: {text}; no one setting meets the objectives for all."
    one = single[0]
    if _one_for_all(pools, total, one):
        return (
            f"One pool with {one.setting} for all takes {_gpus_of(one)}; pools by workload would take {gpus(total)} "
            f"({'; '.join(parts)}), for every pool keeps its own spare."
        )
    other = "" if len(pools) == 1 else f"; one pool with {one.setting} for all would take {_gpus_of(one)}"
    return f"{'Pools by workload' if len(pools) > 1 else 'One pool'}: {text}{other}."
