"""The one-sentence answer of a ladder: which K is best up to which load."""

from collections.abc import Collection, Mapping, Sequence

from loadgen.analysis.answer import label
from loadgen.analysis.goal import within_words
from loadgen.analysis.schedule import span
from loadgen.analysis.schedule_ladder import LadderFinding
from loadgen.analysis.verify_pooled import Pooled, corrected
from loadgen.profiles.model import BatchSchedule

NOTHING: Mapping[int, Pooled] = {}


def ladder_answer(
    ladders: Sequence[LadderFinding],
    *,
    simulated: bool,
    interrupted: bool,
    indicative: bool,
    again: Mapping[int, Mapping[int, Pooled]] | None = None,
) -> str:
    """`SIMULATED: ngram on code-edit: best with K = 4 up to 6 concurrent requests, no speculation from 7 on.`

    `again`: by a ladder's place in `ladders`, the loads that a verification measured again.
    """
    among = [one.condition for one in ladders]
    seen = again or {}
    clauses = [
        f"{one.of} on {label(one.condition, among)}: {best_k(one, seen.get(index, NOTHING))}"
        for index, one in enumerate(ladders)
    ]
    marks = [
        "SIMULATED" if simulated else "",
        "interrupted" if interrupted else "",
        "indicative" if indicative else "",
    ]
    prefix = ", ".join(mark for mark in marks if mark)
    return (f"{prefix}: " if prefix else "") + "; ".join(clauses) + "."


def best_k(ladder: LadderFinding, again: Mapping[int, Pooled] = NOTHING) -> str:
    """The best K by requests in flight, from the static servers; a load that was measured again is held to both
    measurements.
    """
    static = ladder.by_static
    tested = [level.concurrency for level in static.levels]
    in_flight, moved = corrected(static.in_flight, tested, static.static_k, again)
    costs = {*static.static_costs, *(level for level, one in again.items() if one.sign < 0)}
    asides = [f"measured again: {', '.join(one.words for one in moved)}"] if moved else []
    if ladder.unsettled:
        asides.append(f"no verdict at {', '.join(map(str, ladder.unsettled))}")
    if static.unmet:
        asides.append(f"no setting surely keeps that at {', '.join(map(str, static.unmet))}")
    aside = f" ({'; '.join(asides)})" if asides else ""
    within = f" {within_words(ladder.slo.slos)}" if ladder.slo else ""
    if all(k == 0 for _, _, k in in_flight):
        tried = sorted({arm.k for arm in ladder.arms.values() if not arm.constant_schedule})
        return f"no K of {', '.join(map(str, tried))} pays off beyond noise{within}{aside}"
    return f"best{within} with {ranges_words(in_flight, costs)}{aside}"


def ranges_words(in_flight: BatchSchedule, costs: Collection[int] | None = None) -> str:
    """`K = 4 up to 6 concurrent requests, K = 2 7 to 12, no speculation from 13 on`; `no sure gain from 13 on` where
    the static K costs at none of its loads (`costs`; None: not known): a tie went to K = 0.
    """
    parts = []
    for index, (first, last, k) in enumerate(in_flight):
        unit = f" concurrent request{'s' if last > 1 else ''}" if index == 0 and len(in_flight) > 1 else ""
        tie = costs is not None and not any(first <= level <= last for level in costs)
        off = "no sure gain" if tie else "no speculation"
        parts.append(f"{f'K = {k}' if k else off} {span(first, last, in_flight)}{unit}")
    return ", ".join(parts)
