"""The one-sentence answer of a ladder: which K is best up to which load."""

from collections.abc import Sequence

from loadgen.analysis.answer import label
from loadgen.analysis.schedule import span
from loadgen.analysis.schedule_ladder import LadderFinding
from loadgen.profiles.model import BatchSchedule


def ladder_answer(ladders: Sequence[LadderFinding], *, simulated: bool, interrupted: bool, indicative: bool) -> str:
    """`SIMULATED: ngram on code-edit: best with K = 4 up to 6 concurrent requests, no speculation from 7 on.`"""
    among = [one.condition for one in ladders]
    clauses = [f"{one.of} on {label(one.condition, among)}: {best_k(one)}" for one in ladders]
    marks = [
        "SIMULATED" if simulated else "",
        "interrupted" if interrupted else "",
        "indicative" if indicative else "",
    ]
    prefix = ", ".join(mark for mark in marks if mark)
    return (f"{prefix}: " if prefix else "") + "; ".join(clauses) + "."


def best_k(ladder: LadderFinding) -> str:
    """The best K by requests in flight, from the static servers."""
    in_flight = ladder.by_static.in_flight
    tried = sorted({arm.k for arm in ladder.arms.values() if not arm.constant_schedule})
    open_at = f" (no verdict at {', '.join(map(str, ladder.unsettled))})" if ladder.unsettled else ""
    if all(k == 0 for _, _, k in in_flight):
        return f"no K of {', '.join(map(str, tried))} pays off beyond noise{open_at}"
    return f"best with {ranges_words(in_flight)}{open_at}"


def ranges_words(in_flight: BatchSchedule) -> str:
    """`K = 4 up to 6 concurrent requests, K = 2 7 to 12, no speculation from 13 on`."""
    parts = []
    for index, (first, last, k) in enumerate(in_flight):
        unit = " concurrent requests" if index == 0 and len(in_flight) > 1 else ""
        parts.append(f"{f'K = {k}' if k else 'no speculation'} {span(first, last, in_flight)}{unit}")
    return ", ".join(parts)
