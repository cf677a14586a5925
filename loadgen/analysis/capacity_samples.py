"""From single requests to load points: which requests count at a level, pooled over its valid cells."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from loadgen.analysis.acceptance import pool
from loadgen.analysis.capacity_model import LoadPoint, RequestTimes
from loadgen.analysis.checks import check_cell, contexts_of
from loadgen.load.record import Outcome, RequestRecord
from loadgen.store.model import CellKey, CellResult, Condition, Manifest


@dataclass(frozen=True)
class Span:
    """What planning keeps of a request: times on the run's clock, seconds; `first_s` None where nothing came."""

    start_s: float
    end_s: float
    first_s: float | None
    tpot_s: float | None
    ok: bool


def span_of(record: RequestRecord) -> Span | None:
    """The span; None for a cancelled request, which is neither kept nor failed."""
    if record.outcome is Outcome.CANCELLED:
        return None
    ok = record.outcome is Outcome.OK
    end_s = record.last_token_s if ok and record.last_token_s is not None else record.end_s
    return Span(record.start_s, end_s, record.first_token_s, record.tpot_s, ok)


def times_of(span: Span) -> RequestTimes:
    """The request's seconds; infinite if it failed."""
    if not span.ok or span.first_s is None:
        return RequestTimes(math.inf, math.inf, math.inf)
    return RequestTimes(span.first_s - span.start_s, span.tpot_s, span.end_s - span.start_s)


def window_of(spans: Sequence[Span], level: int, window_s: float) -> tuple[float, float] | None:
    """(open, close) of a closed-loop cell: from the moment when every worker held a request, for the window's length.

    So neither ramp-up nor drain counts. None if the workers never all held one.
    """
    starts = sorted(span.start_s for span in spans)
    if len(starts) < level:
        return None
    return starts[level - 1], starts[level - 1] + window_s


def load_points(
    manifest: Manifest, cells: Sequence[CellResult], spans: Mapping[CellKey, Sequence[Span]]
) -> dict[tuple[Condition, str], tuple[LoadPoint, ...]]:
    """(condition, profile) → its levels, ascending. A cell that a trust check voids is left out, and so is a level
    without a valid cell or without single requests.
    """
    contexts = contexts_of(manifest, cells)
    groups: dict[tuple[Condition, str], dict[int, list[CellResult]]] = {}
    for cell in cells:
        if any(check.voids for check in check_cell(cell, contexts[cell.key.profile])):
            continue
        levels = groups.setdefault((cell.key.condition, cell.key.profile), {})
        levels.setdefault(cell.key.level, []).append(cell)
    points = {
        place: tuple(p for level, found in sorted(levels.items()) if (p := _point(level, found, spans)) is not None)
        for place, levels in sorted(groups.items())
    }
    return {place: found for place, found in points.items() if found}


def _point(level: int, cells: Sequence[CellResult], spans: Mapping[CellKey, Sequence[Span]]) -> LoadPoint | None:
    begun: list[float] = []
    ended: list[RequestTimes] = []
    for cell in cells:
        own = spans.get(cell.key, ())
        window = window_of(own, level, cell.window_s)
        if window is None:
            continue
        begun += [times_of(s).ttft_s for s in own if _within(s.first_s if s.ok else s.end_s, window)]
        ended += [times_of(s) for s in own if _within(s.end_s, window)]
    rate = _mean(cell.requests_per_s for cell in cells)
    if not begun or not ended or rate <= 0:
        return None
    pooled = pool(cell.window for cell in cells)
    return LoadPoint(
        level=level,
        requests_per_s=rate,
        tokens_per_s=_mean(cell.output_tokens_per_s for cell in cells),
        begun=tuple(sorted(begun)),
        ended=tuple(ended),
        tokens_per_step=pooled.tokens_per_step if pooled else None,
        source=cells[0].key.profile,
    )


def _within(at_s: float | None, window: tuple[float, float]) -> bool:
    return at_s is not None and window[0] <= at_s < window[1]


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return math.fsum(known) / len(known)
