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
    if better := ladder.schedule.better:
        most = max(better, key=lambda level: level.over_static)
        gain = f"{most.over_static:.2f}x of it at {most.concurrency}"
        asides.append(f"on one server static K = {ladder.schedule.static_k}, though a schedule is {gain}")
    aside = f" ({'; '.join(asides)})" if asides else ""
    within = f" {within_words(ladder.slo.slos)}" if ladder.slo else ""
    if all(k == 0 for _, _, k in in_flight):
        tried = sorted({arm.k for arm in ladder.arms.values() if not arm.constant_schedule})
        return f"no K of {', '.join(map(str, tried))} pays off beyond noise{within}{aside}"
    return f"best{within} with {ranges_words(in_flight, costs)}{aside}"


def load_range(ladder: LadderFinding, again: Mapping[int, Pooled] = NOTHING) -> tuple[str, str]:
    """(`if fewer than 16 requests run at once`, `From 16 on there is no sure gain.`): where the static K pays by the
    same ranges as `best_k`, and what to do at the other loads; both empty where it pays at every tested load.
    """
    static = ladder.by_static
    in_flight, _ = corrected(static.in_flight, [level.concurrency for level in static.levels], static.static_k, again)
    off = [entry for entry in in_flight if entry[2] == 0]
    on = [entry for entry in in_flight if entry[2] > 0]
    if not off or not on:
        return "", ""
    if len(off) == 1 and off[0] == in_flight[-1]:
        when = f"if fewer than {off[0][0]} requests run at once"
    else:
        spans = [str(first) if first == last else f"{first} to {last}" for first, last, _ in on]
        when = f"if {' or '.join(spans)} requests run at once"
    beyond = " ".join(_beyond(entry, in_flight, static.static_costs, again) for entry in off)
    return when, beyond


def _beyond(entry: tuple[int, int, int], of: BatchSchedule, costs: Collection[int], again: Mapping[int, Pooled]) -> str:
    """What to do at the loads of one range without speculation."""
    where = span(*entry[:2], of)
    where = where[:1].upper() + where[1:]
    seen = [one for level, one in again.items() if one.sign < 0 and entry[0] <= level <= entry[1]]
    if not seen and not any(entry[0] <= level <= entry[1] for level in costs):
        return f"{where} there is no sure gain and no sure cost."
    worst = f" ({min(seen, key=lambda one: one.log_speedup).words})" if seen else ""
    return f"{where} it costs{worst}: serve that load from a second pool without speculation, or leave speculation out."


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
