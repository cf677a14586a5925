"""From a profile's judged pairs to the step times that its cost is fitted to."""

from collections.abc import Sequence
from dataclasses import dataclass

from loadgen.analysis.acceptance import pool, step_time_s
from loadgen.analysis.checks import JudgedPair
from loadgen.analysis.stepcost import GRAPH_LIMIT, StepPoint
from loadgen.analysis.steps import step_groups
from loadgen.metrics.model import CounterDelta
from loadgen.store.model import ServerFacts


@dataclass(frozen=True)
class LevelSteps:
    """Both servers' mean steps at one level, from the pooled windows of its valid pairs."""

    level: int
    plain: StepPoint
    own: StepPoint


def graph_limits(servers: Sequence[ServerFacts]) -> dict[str, int]:
    """The largest captured CUDA graph of each profile's server, in tokens, where it told; 0 without graphs."""
    found = {}
    for server in servers:
        size = server.effective.get("max_graph_size")
        if server.effective.get("graph_mode") == "NONE":
            found[server.profile] = 0
        elif isinstance(size, int):
            found[server.profile] = size
    return found


def level_steps(
    judged: Sequence[JudgedPair], plain_limit: int = GRAPH_LIMIT, own_limit: int = GRAPH_LIMIT
) -> tuple[LevelSteps, ...]:
    """By level; levels without a valid pair, or whose servers count no steps, are left out."""
    found = []
    for level in sorted({one.pair.key.level for one in judged}):
        pairs = [one.pair for one in judged if one.pair.key.level == level and one.valid]
        plain = _point([pair.baseline.window for pair in pairs], level, plain_limit, speculates=False)
        own = _point([pair.profile.window for pair in pairs], level, own_limit, speculates=True)
        if plain is not None and own is not None:
            found.append(LevelSteps(level, plain, own))
    return tuple(found)


def _point(windows: Sequence[CounterDelta | None], level: int, limit: int, *, speculates: bool) -> StepPoint | None:
    known = [window for window in windows if window is not None]
    delta = pool(known)
    seconds = step_time_s(delta)
    if delta is None or len(known) < len(windows) or not seconds or not delta.decode_batch or not delta.request_steps:
        return None
    drafted = (delta.draft_tokens or 0.0) / delta.request_steps if speculates else 0.0
    return StepPoint(delta.decode_batch, drafted, seconds, speculates, step_groups(known, level), limit)
