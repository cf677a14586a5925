"""What all levels of one session have in common: the luck of its server starts."""

import math
from collections.abc import Iterable, Mapping


def common_shifts(levels: Iterable[Mapping[int, float]]) -> tuple[float, ...]:
    """Each session's mean distance of ln ratio from the levels' means, by session number; they add up to 0.

    From each level's session means; levels that a session lacks are left out, so that no session is judged by others'
    levels.
    """
    kept = list(levels)
    sessions = sorted({number for level in kept for number in level})
    whole = [level for level in kept if len(level) == len(sessions)]
    if not whole:
        return ()
    middle = [math.fsum(level.values()) / len(level) for level in whole]
    return tuple(
        math.fsum(level[number] - mean for level, mean in zip(whole, middle, strict=True)) / len(whole)
        for number in sessions
    )
