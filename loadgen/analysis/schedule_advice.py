"""A schedule as a recommendation for the vLLM version at hand."""

import itertools

from loadgen.analysis.capability import OLD_SWITCH, SCHEDULE, TWO_POOLS, Ability, ability
from loadgen.analysis.model import Recommendation
from loadgen.analysis.schedule import Choice, Schedule
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
) -> Recommendation:
    """The schedule, a static K, two pools, or no speculation, as far as this version and method can obey.

    `verified` is None: only `loadgen verify` can say that.
    """
    able = ability(method, version, data_parallel)
    choice = feasible(schedule, able)
    if choice is Choice.NONE:
        why = f"No K gains beyond noise at any load: leave speculation out. {old_number(((1, 1, 0),))}"
        return Recommendation(OFF, None, holds_for, None, why)
    if choice is Choice.STATIC:
        told = schedule.sentence if schedule.choice is Choice.STATIC else _best_static(schedule)
        return Recommendation(STATIC, schedule.static_k, holds_for, None, f"{told} {old_number(((1, 1, 1),))}")
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
    return Recommendation(SCHEDULE, edges, holds_for, None, why)


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
