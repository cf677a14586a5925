"""A schedule as a recommendation for the vLLM version at hand."""

import itertools

from loadgen.analysis.capability import OLD_SWITCH, SCHEDULE, TWO_POOLS, Ability, ability
from loadgen.analysis.model import Recommendation
from loadgen.analysis.schedule import Choice, Schedule, span
from loadgen.profiles.model import BatchSchedule

OFF = "speculative-config"
STATIC = "num_speculative_tokens"


def recommend_schedule(
    schedule: Schedule,
    *,
    method: str,
    version: str | None,
    data_parallel: int | None,
    holds_for: str,
    max_graph_size: int | None = None,
    priced: bool = True,
    profile: str = "",
) -> Recommendation:
    """The schedule, a static K, two pools, or no speculation, as far as this version and method can obey.

    `verified` is None: only `loadgen verify` can say that. `priced`: the schedule's own costs were measured; else it is
    a candidate, and `profile` names what is to be measured.
    """
    able = ability(method, version, data_parallel)
    choice = feasible(schedule, able)
    if choice is Choice.NONE:
        why = f"No K gains beyond noise at any load: leave speculation out. {old_number(((1, 1, 0),))}"
        return Recommendation(OFF, None, holds_for, None, why)
    if choice is Choice.STATIC:
        told = schedule.sentence if schedule.choice is Choice.STATIC else _best_static(schedule)
        number = f" {old_number(((1, 1, 1),))}" if len(schedule.pools_in_flight) == 1 else ""
        return Recommendation(STATIC, schedule.static_k, holds_for, None, f"{told}{number}")
    if choice is Choice.TWO_POOLS:
        told = schedule.sentence if schedule.choice is Choice.TWO_POOLS else _pools(schedule)
        reason = "" if schedule.choice is Choice.TWO_POOLS and able.setting == SCHEDULE else f" {able.reason}"
        warning = graph_warning(schedule, schedule.pools_in_flight, max_graph_size)
        value = _pool_value(schedule, able)
        setting = able.setting if able.setting != SCHEDULE else TWO_POOLS
        why = f"{told} {old_number(_pool_batches(schedule))}{reason}{warning}"
        return Recommendation(setting, value, holds_for, None, why)
    edges = [list(entry) for entry in schedule.ranges]
    tax = (
        ""
        if schedule.zero_measured or all(k for _, _, k in schedule.ranges)
        else " K = 0 was taken for the baseline; vLLM's own K = 0 costs more (vllm#49986)."
    )
    warning = graph_warning(schedule, schedule.in_flight, max_graph_size)
    why = f"{schedule.sentence} {old_number(schedule.ranges)} {able.reason}{tax}{warning}"
    if not priced:
        why = f"{unpriced(profile, schedule.pools_in_flight)} {why}"
    return Recommendation(SCHEDULE, edges, holds_for, None, why, candidate=not priced)


def unpriced(profile: str, pools: BatchSchedule) -> str:
    """What is missing of a schedule that was made from static servers, and what is safe until it is measured."""
    on = [(first, last) for first, last, k in pools if k]
    k = max(k for *_, k in pools)
    static = f"static K = {k}"
    if len(on) == 1 and on[0][0] == 1 and len(pools) > 1:
        last = on[0][1]
        safe = (
            f"{static} where at most {last} requests run at once, or two pools behind a router ({static} up to {last} "
            f"in flight, no speculation from {last + 1} on)"
        )
    elif k:
        spans = " and ".join(span(first, last, pools) for first, last in on)
        safe = f"{static} {spans} (requests in flight), no speculation elsewhere, in two pools behind a router"
    else:
        safe = "no speculation"
    return (
        "It was made from static servers: what a schedule itself costs (PIECEWISE graphs, K = 0) is not in it; make "
        f"answer PROFILE={profile} measures that. Safe until then: {safe}."
    )


def feasible(schedule: Schedule, able: Ability) -> Choice:
    """The schedule's choice, or the next best where this server cannot obey a schedule: two pools if the static K loses
    gains at some loads only, that K if it gains at all of them.
    """
    if schedule.choice is not Choice.SCHEDULE or able.setting == SCHEDULE:
        return schedule.choice
    # By requests in flight: a range may have no whole batch of its own, and a router sees it all the same.
    if len(schedule.pools_in_flight) > 1:
        return Choice.TWO_POOLS
    return Choice.STATIC if schedule.pools_in_flight[0][2] else Choice.NONE


def old_number(ranges: BatchSchedule) -> str:
    """Which `disable_by_batch_size` it would have been; users know the question by that name."""
    off = next((first for first, _, k in ranges if k == 0), None)
    if off is None:
        return f"{OLD_SWITCH} would have had no use here."
    if any(k > 0 and first > off for first, _, k in ranges):
        return f"{OLD_SWITCH} could not say this: speculation pays again above {off}."
    return f"{OLD_SWITCH} would have been {off}."


def graph_warning(schedule: Schedule, in_flight: BatchSchedule, limit: int | None) -> str:
    """A warning where K falls just where batch × (1 + K) passes the largest captured graph: that drop may be an
    artefact (seen on an H200 at 4 x 128 of 512).
    """
    if limit is None:
        return ""
    tested = [level.concurrency for level in schedule.levels]
    for (_, last, k), (_, _, next_k) in itertools.pairwise(in_flight):
        low = max((level for level in tested if level <= last), default=last)
        high = min((level for level in tested if level > last), default=last)
        if next_k < k and low * (1 + k) < limit <= high * (1 + k):
            return (
                f" Between {low} and {high} the batch times {1 + k} passes the CUDA graph capture limit of {limit} "
                f"tokens: raise max_cudagraph_capture_size above {high * (1 + k)} and measure again before lowering K."
            )
    return ""


def _pool_value(schedule: Schedule, able: Ability) -> object:
    if able.setting == OLD_SWITCH:
        return next((first for first, _, k in _pool_batches(schedule) if k == 0), None)
    return {"num_speculative_tokens": schedule.static_k, "edges": [list(entry) for entry in schedule.pools_in_flight]}


def _pool_batches(schedule: Schedule) -> BatchSchedule:
    """The pools by requests per step; in flight where a range has no whole batch of its own."""
    return schedule.pools if len(schedule.pools) == len(schedule.pools_in_flight) else schedule.pools_in_flight


def _best_static(schedule: Schedule) -> str:
    return f"Static K = {schedule.static_k} gains at every load that was tested."


def _pools(schedule: Schedule) -> str:
    pools = schedule.pools_in_flight
    if len(pools) > 2:
        parts = [f"{f'K = {k}' if k else 'no speculation'} {span(first, last, pools)}" for first, last, k in pools]
        return f"By requests in flight: {', '.join(parts)}."
    _, last, k = pools[0]
    side = f"K = {k} pays up to {last} requests in flight" if k else f"speculation pays above {last} requests in flight"
    return f"{side} (static K = {schedule.static_k})."
