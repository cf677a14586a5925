"""From stored open-loop cells to points of the plan."""

import math
from collections.abc import Iterable

from loadgen.analysis.capacity_model import OpenPoint, RequestTimes
from loadgen.load.health import LAG_LIMIT_S
from loadgen.store.model import Condition
from loadgen.store.open_cells import OpenCell


def left_out(cells: Iterable[OpenCell]) -> tuple[str, ...]:
    """A sentence for each cell that is left out because its client could not keep up."""
    return tuple(
        f"{cell.profile} on {cell.condition.workload} at {cell.rate_per_s:g}/s is left out: the client's loop was "
        f"{1000 * cell.loop_lag_p99_s:.0f} ms late at p99; measure it again on a freer machine."
        for cell in cells
        if cell.loop_lag_p99_s > LAG_LIMIT_S
    )


def open_points(cells: Iterable[OpenCell]) -> dict[tuple[Condition, str], tuple[OpenPoint, ...]]:
    """(condition, profile) → its measured rates, ascending. Cells whose client could not keep up are left out."""
    found: dict[tuple[Condition, str], list[OpenPoint]] = {}
    for cell in cells:
        if cell.loop_lag_p99_s > LAG_LIMIT_S or not cell.ttft_s or cell.seconds <= 0:
            continue
        found.setdefault((cell.condition, cell.profile), []).append(_point(cell))
    return {place: tuple(sorted(points, key=lambda p: p.rate_per_s)) for place, points in sorted(found.items())}


def _point(cell: OpenCell) -> OpenPoint:
    rows = zip(cell.ttft_s, cell.tpot_s, cell.e2e_s, strict=True)
    times = tuple(
        RequestTimes(math.inf, math.inf, math.inf) if ttft is None or e2e is None else RequestTimes(ttft, tpot, e2e)
        for ttft, tpot, e2e in rows
    )
    return OpenPoint(
        rate_per_s=cell.rate_per_s,
        requests_per_s=len(times) / cell.seconds,
        tokens_per_s=cell.output_tokens / cell.seconds,
        in_flight=cell.in_flight_mean,
        times=times,
    )
