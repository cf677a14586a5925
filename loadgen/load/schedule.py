"""When the requests of an open loop start: pure, from a shape and its seed."""

import math
import random
from collections.abc import Iterator

from loadgen.errors import UsageError
from loadgen.load.shape import Arrival, OpenLoop, Stage


def start_offsets(shape: OpenLoop) -> tuple[float, ...]:
    """Ascending start times in seconds from the beginning; UsageError if the shape gives none."""
    if bool(shape.stages) == bool(shape.trace_s):
        raise UsageError("An open loop needs a rate or a trace, and not both: give one of them.")
    offsets = _from_trace(shape) if shape.trace_s else tuple(_from_stages(shape))
    if not offsets:
        raise UsageError("The schedule holds no request: give a longer duration or a higher rate.")
    return offsets


def schedule_length_s(shape: OpenLoop) -> float:
    """Seconds from the beginning to the end of the schedule: its stages, or its last arrival."""
    if shape.stages:
        return sum(stage.duration_s for stage in shape.stages)
    return max(_from_trace(shape))


def _from_trace(shape: OpenLoop) -> tuple[float, ...]:
    if shape.trace_speed <= 0:
        raise UsageError(f"A trace speed of {shape.trace_speed:g} makes no sense: give a number above 0.")
    times = sorted(shape.trace_s)
    return tuple((time_s - times[0]) / shape.trace_speed for time_s in times)


def _from_stages(shape: OpenLoop) -> Iterator[float]:
    for stage in shape.stages:
        if stage.duration_s <= 0 or stage.rate_per_s < 0 or not math.isfinite(stage.rate_per_s):
            raise UsageError("A stage needs a duration above 0 s and a rate of 0 or more requests a second.")
    if shape.arrival is Arrival.CONSTANT:
        yield from _constant(shape.stages)
    else:
        yield from _poisson(shape.stages, random.Random(shape.seed))


def _constant(stages: tuple[Stage, ...]) -> Iterator[float]:
    """Evenly spaced; what a stage leaves of an interval counts in the next one."""
    begin_s, due = 0.0, 0.0
    for stage in stages:
        # due: intervals until the next start
        while stage.rate_per_s > 0 and due / stage.rate_per_s < stage.duration_s:
            yield begin_s + due / stage.rate_per_s
            due += 1.0
        due = max(0.0, due - stage.rate_per_s * stage.duration_s)
        begin_s += stage.duration_s


def _poisson(stages: tuple[Stage, ...], rng: random.Random) -> Iterator[float]:
    """Exponential gaps; being memoryless, each stage starts afresh."""
    begin_s = 0.0
    for stage in stages:
        at_s = rng.expovariate(stage.rate_per_s) if stage.rate_per_s > 0 else math.inf
        while at_s < stage.duration_s:
            yield begin_s + at_s
            at_s += rng.expovariate(stage.rate_per_s)
        begin_s += stage.duration_s
