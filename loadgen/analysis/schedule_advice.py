"""A schedule as a recommendation for the vLLM version at hand."""

from loadgen.analysis.capability import OLD_SWITCH, TWO_POOLS, ability
from loadgen.analysis.model import Recommendation
from loadgen.analysis.recommendation import OFF, STATIC
from loadgen.analysis.schedule import Choice, Schedule


def recommend_schedule(
    schedule: Schedule, *, method: str, version: str | None, data_parallel: int | None, holds_for: str
) -> Recommendation:
    """The schedule, a static K, or no speculation; two pools where this version or method cannot obey a schedule.

    `verified` is None: only `loadgen verify` can say that.
    """
    old = next((first for first, _, k in schedule.ranges if k == 0), None)
    number = f"{OLD_SWITCH} would have been {old}." if old else f"{OLD_SWITCH} would have had no use here."
    if schedule.choice is Choice.NONE:
        return Recommendation(OFF, None, holds_for, None, f"{schedule.sentence} {number}")
    if schedule.choice is Choice.STATIC:
        losing = [level.concurrency for level in schedule.levels if level.speedup / level.over_static < 1.0]
        pool = (
            f" It costs at {', '.join(map(str, losing))} requests in flight: send such load to a server without it."
            if losing
            else ""
        )
        return Recommendation(STATIC, schedule.static_k, holds_for, None, f"{schedule.sentence}{pool} {number}")
    able = ability(method, version, data_parallel)
    edges = [list(entry) for entry in schedule.ranges]
    value: object = {"edges": edges} if able.setting == TWO_POOLS else edges
    tax = (
        ""
        if schedule.zero_measured or old is None
        else " K = 0 was taken for the baseline; vLLM's own K = 0 costs more (vllm#49986)."
    )
    return Recommendation(able.setting, value, holds_for, None, f"{schedule.sentence} {number} {able.reason}{tax}")
