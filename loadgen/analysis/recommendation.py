"""What to set on the vLLM version at hand, from the measured levels of one static K, or of a ladder of K."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from loadgen.analysis.answer import best_gain, candidate, label, server_fault
from loadgen.analysis.batchmap import batch_at, batches_of
from loadgen.analysis.breakeven import spans
from loadgen.analysis.capability import OLD_SWITCH, SCHEDULE, TWO_POOLS, Ability, ability
from loadgen.analysis.goal import SloTable, within_words
from loadgen.analysis.ladder import LadderArm
from loadgen.analysis.model import BreakEvenStatus, ConditionFinding, Crossing, ProfileFinding, Recommendation
from loadgen.analysis.recommendation_advice import DEFAULT_END, Advice, edges_of, schedule_edges
from loadgen.analysis.schedule import Choice
from loadgen.analysis.schedule_advice import OFF, STATIC, feasible, recommend_schedule, unpriced
from loadgen.analysis.schedule_answer import best_k, load_range
from loadgen.analysis.schedule_edges import whole_batch
from loadgen.analysis.schedule_ladder import LadderFinding, ladder_findings
from loadgen.analysis.schedule_slo import unmet_words
from loadgen.profiles.model import BatchSchedule
from loadgen.store.model import Condition


@dataclass(frozen=True)
class Situation:
    """What the advice depends on beside the figures; None where it is not known."""

    methods: dict[str, str]
    num_speculative_tokens: dict[str, int]
    simulated: bool = False
    version: str | None = None
    max_num_seqs: int | None = None
    data_parallel: int | None = None
    max_graph_size: dict[str, int] = field(default_factory=dict)
    """By profile: the largest captured CUDA graph, in tokens per step."""
    ladder: Mapping[str, LadderArm] = field(default_factory=dict)
    """By profile: its rung, where several K of one method were measured."""
    objective: str = "throughput"
    slo: SloTable | None = None
    """The limits within which the objective counts, with each setting's verdict."""
    against: str = "baseline"


@dataclass(frozen=True)
class _Case:
    condition: Condition
    finding: ProfileFinding

    @property
    def status(self) -> BreakEvenStatus:
        return self.finding.break_even["output_tokens_per_s"].status

    @property
    def everywhere(self) -> bool:
        """A sure gain at every level that was measured."""
        verdict = self.finding.break_even["output_tokens_per_s"]
        return self.status is BreakEvenStatus.PAYS_THROUGHOUT and verdict.sure_gains == verdict.tested_levels

    @property
    def crossings(self) -> tuple[Crossing, ...]:
        return self.finding.break_even["output_tokens_per_s"].crossings


def recommend(conditions: Sequence[ConditionFinding], situation: Situation) -> Recommendation | None:
    """The setting for the case with the largest gain, with what it holds for; None while nothing is settled."""
    advice = advise(conditions, situation)
    return replace(advice.recommendation, edges=schedule_edges(advice)) if advice else None


def advise(conditions: Sequence[ConditionFinding], situation: Situation) -> Advice | None:
    """The recommendation and the claim behind it.

    A profile whose server accepted nothing at all is left out: that is a fault and no finding. Static servers do not
    price what a schedule costs (PIECEWISE graphs, K = 0 tax), so it stays unverified here.
    """
    if situation.ladder:
        return _for_ladder(conditions, situation)
    cases = [
        _Case(one.condition, profile)
        for one in conditions
        for profile in one.profiles
        if candidate(profile) and not server_fault(profile)
    ]
    pays = [case for case in cases if case.status in (BreakEvenStatus.FOUND, BreakEvenStatus.PAYS_THROUGHOUT)]
    among = [one.condition for one in conditions]
    if pays:
        best = max(pays, key=lambda case: best_gain(case.finding))
        others = [case for case in cases if case.finding.profile == best.finding.profile and case is not best]
        return _for_case(best, others, situation, among)
    if cases and all(case.status is BreakEvenStatus.NEVER_PAYS for case in cases):
        return _never(cases, situation, among)
    return None


def schedules(conditions: Sequence[ConditionFinding], situation: Situation) -> tuple[LadderFinding, ...]:
    """The ladders of a run, each with its schedule; servers that accepted nothing are left out as faulty."""
    sound = [
        ConditionFinding(one.condition, tuple(profile for profile in one.profiles if not server_fault(profile)))
        for one in conditions
    ]
    return ladder_findings(
        sound,
        situation.ladder,
        max_num_seqs=situation.max_num_seqs or DEFAULT_END,
        objective=situation.objective,
        slo=situation.slo,
        against=situation.against,
    )


def _for_ladder(conditions: Sequence[ConditionFinding], situation: Situation) -> Advice | None:
    """Of the ladder, under the condition, with the largest gain."""
    found = schedules(conditions, situation)
    if not found:
        return None
    best = max(found, key=lambda one: max(math.log(level.speedup) for level in one.schedule.levels))
    among = [one.condition for one in conditions]
    schedule, first, last = best.schedule, best.schedule.levels[0], best.schedule.levels[-1]
    able = ability(best.method, situation.version, situation.data_parallel)
    choice = feasible(schedule, able)
    when, beyond = load_range(best) if choice is Choice.STATIC else ("", "")
    measured = "measured at " if when else ""
    holds = f"{best.of} on {label(best.condition, among)}, {measured}{_loads(first.concurrency, last.concurrency)}"
    if situation.slo is not None:
        holds += f", by {situation.objective} {within_words(situation.slo.slos)}"
    holds += ", simulated" if situation.simulated else ""
    limits = [size for name, size in situation.max_graph_size.items() if name in best.arms]
    recommendation = recommend_schedule(
        schedule,
        method=best.method,
        version=situation.version,
        data_parallel=situation.data_parallel,
        holds_for=holds,
        max_graph_size=min(limits, default=None),
        priced=best.costs_measured,
        profile=best.of,
    )
    rest = [one for one in found if one.of == best.of and one is not best]
    others = "".join(_other_ladder(one, among) for one in rest)
    recommendation = replace(recommendation, why=recommendation.why + others, when=when, beyond=beyond)
    if told := unmet_words(best):
        recommendation = replace(recommendation, why=f"{told} {recommendation.why}")
    tried = schedule.ranges if len(schedule.ranges) > 1 else schedule.pools
    static_k = schedule.static_k or max(arm.k for arm in best.arms.values() if not arm.constant_schedule)
    end = schedule.in_flight[-1][1]
    claimed = {
        Choice.SCHEDULE: schedule.in_flight,
        Choice.TWO_POOLS: schedule.pools_in_flight,
        Choice.STATIC: ((1, end, static_k),),
        Choice.NONE: ((1, end, 0),),
    }[choice]
    return Advice(
        recommendation=recommendation,
        choice=choice,
        profile=best.of,
        condition=best.condition,
        static_k=static_k,
        ranges=tried,
        in_flight=claimed,
        # A schedule that is not claimed is measured too, and at its edges.
        edges=edges_of(claimed) or edges_of(schedule.in_flight),
        can_schedule=able.setting == SCHEDULE and len(tried) > 1,
        unmet=schedule.unmet,
        tested=tuple(level.concurrency for level in schedule.levels),
    )


def _other_ladder(one: LadderFinding, among: Sequence[Condition]) -> str:
    """What the run says of another of its conditions."""
    off = all(k == 0 for *_, k in one.by_static.in_flight)
    cure = ": send that to a server without speculation" if off else ""
    return f" On {label(one.condition, among)}: {best_k(one)}{cure}."


def _end(situation: Situation, levels: Sequence[int]) -> int:
    """Where the last range ends: what was measured lies within it."""
    return max(situation.max_num_seqs or DEFAULT_END, *levels)


def _never(cases: Sequence[_Case], situation: Situation, among: Sequence[Condition]) -> Advice:
    names = ", ".join(sorted({case.finding.profile for case in cases}))
    holds = ", ".join(label(condition, among) for condition in among)
    why = f"{names} never pays off at the tested loads."
    best = max(cases, key=lambda case: best_gain(case.finding))
    k = situation.num_speculative_tokens.get(best.finding.profile, 1)
    levels = best.finding.break_even["output_tokens_per_s"].tested_levels
    off = ((1, _end(situation, levels), 0),)
    return Advice(
        Recommendation(OFF, None, holds, None, why), Choice.NONE, best.finding.profile, best.condition, k, off, off
    )


def _for_case(case: _Case, others: Sequence[_Case], situation: Situation, among: Sequence[Condition]) -> Advice:
    profile = case.finding.profile
    k = situation.num_speculative_tokens.get(profile, 1)
    levels = case.finding.break_even["output_tokens_per_s"].tested_levels
    alike = [other for other in others if case.everywhere and other.everywhere]
    names = " and ".join(label(one.condition, among) for one in (case, *alike))
    partly = case.status is BreakEvenStatus.PAYS_THROUGHOUT and not case.everywhere
    holds = f"{profile} on {names}, {'measured at ' if partly else ''}{_loads(levels[0], levels[-1])}"
    holds += ", simulated" if situation.simulated else ""
    tail = _others([other for other in others if other not in alike], among)
    if case.status is BreakEvenStatus.PAYS_THROUGHOUT:
        always = ((1, _end(situation, levels), k),)
        told = replace(_static(case, k, tail), holds_for=holds)
        return Advice(told, Choice.STATIC, profile, case.condition, k, always, always)
    ranges = tuple(ranges_of(case.finding, k, situation.max_num_seqs))
    in_flight = _in_flight(case, k, max(ranges[-1][1], levels[-1]))
    able = ability(situation.methods.get(profile, "none"), situation.version, situation.data_parallel)
    if len(ranges) < len(in_flight):
        ranges = in_flight
        able = _by_router(able)
    old = _old_number(ranges)
    graph = _graph_limit(case, k, situation.max_graph_size.get(profile))
    schedule = able.setting == SCHEDULE
    first = f"{unpriced(profile, in_flight)} " if schedule else ""
    why = first + _why(case, able, old) + graph + tail
    told = Recommendation(able.setting, _value(able, ranges, in_flight, old), holds, None, why, candidate=schedule)
    return Advice(
        recommendation=told,
        choice=Choice.SCHEDULE if able.setting == SCHEDULE else Choice.TWO_POOLS,
        profile=profile,
        condition=case.condition,
        static_k=k,
        ranges=ranges,
        in_flight=in_flight,
        edges=edges_of(in_flight),
        can_schedule=able.setting == SCHEDULE,
    )


def _static(case: _Case, k: int, tail: str) -> Recommendation:
    """The static K, with the loads at which it gains; where it gains at some only, the rest is no sure cost."""
    verdict = case.finding.break_even["output_tokens_per_s"]
    levels, gains = verdict.tested_levels, verdict.sure_gains
    if case.everywhere and len(levels) > 1:
        why = (
            f"K = {k} pays off at every load up to {levels[-1]}; {OLD_SWITCH} would have had to be above {levels[-1]}."
        )
        return Recommendation(STATIC, k, "", None, why + tail)
    why = f"K = {k} {verdict.sentence}.{tail}"
    if case.everywhere:
        return Recommendation(STATIC, k, "", None, why)
    when = f"if {spans(gains, levels)} requests run at once"
    untold = spans([level for level in levels if level not in gains], levels)
    beyond = f"At {untold} there is no sure gain and no sure cost."
    return Recommendation(STATIC, k, "", None, why, when=when, beyond=beyond)


def _by_router(able: Ability) -> Ability:
    """Two pools where a range has no whole batch of its own, so that a schedule cannot say it."""
    if able.setting != SCHEDULE:
        return able
    return Ability(
        TWO_POOLS,
        "A schedule counts whole requests per engine step, which are too few there to tell these loads apart: run one "
        "pool with the static config and one without speculation, behind a router with this threshold.",
    )


def _value(able: Ability, ranges: BatchSchedule, in_flight: BatchSchedule, old: int | None) -> object:
    """A schedule in requests per step; for a router in requests in flight, which is what it sees."""
    if able.setting == TWO_POOLS:
        return {"edges": [list(entry) for entry in in_flight]}
    return old if able.setting == OLD_SWITCH else [list(entry) for entry in ranges]


def _in_flight(case: _Case, k: int, end: int) -> BatchSchedule:
    """The crossings as (first, last, K) by requests in flight."""
    pays = case.crossings[0].direction == "down"
    found: list[tuple[int, int, int]] = []
    first = 1
    for crossing in case.crossings:
        found.append((first, int(crossing.concurrency), k if pays else 0))
        first, pays = int(crossing.concurrency) + 1, not pays
    return (*found, (first, max(end, first), k if pays else 0))


def _graph_limit(case: _Case, k: int, limit: int | None) -> str:
    """A warning if a turn downwards lies where batch × (1 + K) reaches the captured graphs' end: it may be an artefact.

    Prefills come on top, so that a step at the limit is already beyond it (seen on an H200 at 4 x 128 of 512).
    """
    for crossing in case.crossings:
        low, high = crossing.level_below * (1 + k), crossing.level_above * (1 + k)
        if limit is not None and crossing.direction == "down" and low < limit <= high:
            return (
                f" Between {crossing.level_below} and {crossing.level_above} the batch times {1 + k} reaches the CUDA "
                f"graph capture limit of {limit} tokens: raise max_cudagraph_capture_size above {high} and measure "
                "again before switching off."
            )
    return ""


def ranges_of(finding: ProfileFinding, k: int, max_num_seqs: int | None) -> list[tuple[int, int, int]]:
    """(first batch, last batch, K or 0) in vLLM's form, from the crossings by output tokens/s.

    The edges are requests per engine step in the speculating server, read from the measured levels' batches, at least
    1; a range that has no whole batch of its own is left out.
    """
    crossings = finding.break_even["output_tokens_per_s"].crossings
    pays = crossings[0].direction == "down"
    ranges: list[tuple[int, int, int]] = []
    first = 1
    for crossing in crossings:
        batches = batches_of(finding.levels)
        last = whole_batch(batch_at(batches, crossing.concurrency))
        if pays:
            # The level that surely costs must not share the last whole batch.
            last = min(last, whole_batch(batch_at(batches, crossing.level_above)) - 1)
        if last >= first:
            ranges.append((first, last, k if pays else 0))
            first = last + 1
        pays = not pays
    end = max(max_num_seqs or DEFAULT_END, first, finding.levels[-1].concurrency)
    return [*ranges, (first, end, k if pays else 0)]


def _old_number(ranges: Sequence[tuple[int, int, int]]) -> int | None:
    """V0's `disable_by_batch_size`: speculation off from this many requests on; None if it only pays above."""
    off = [first for first, _, k in ranges if k == 0]
    return off[0] if off and ranges[0][2] > 0 else None


def _why(case: _Case, able: Ability, old: int | None) -> str:
    turn = case.finding.break_even["output_tokens_per_s"].sentence
    number = (
        f"{OLD_SWITCH} would have been {old}."
        if old is not None
        else f"{OLD_SWITCH} could not say this: speculation pays only above its turn."
    )
    return f"{case.finding.profile} {turn}. {number} {_batch_note(case, old)}{able.reason}"


def _loads(first: int, last: int) -> str:
    """The tested loads in words."""
    if last > first:
        return f"{first} to {last} concurrent requests"
    return f"{first} concurrent request{'s' if first > 1 else ''} only"


def _batch_note(case: _Case, old: int | None) -> str:
    """Why the setting's edge is below the turn; empty where they agree. Not every request is in every engine step."""
    turn = math.floor(case.crossings[0].concurrency)
    if old is None or len(case.crossings) > 1 or old - 1 >= turn:
        return ""
    return f"vLLM counts requests per engine step: {turn} in flight are about {old - 1} there. "


def _others(others: Sequence[_Case], among: Sequence[Condition]) -> str:
    """What the same setting means for the run's other conditions."""
    never = [label(case.condition, among) for case in others if case.status is BreakEvenStatus.NEVER_PAYS]
    turns = [case for case in others if case.status is BreakEvenStatus.FOUND]
    parts = []
    if never:
        parts.append(f"On {', '.join(never)} it never pays off: send that to a server without speculation.")
    parts += [
        f"On {label(case.condition, among)} that is not settled{_known(case)}."
        for case in others
        if case.status is BreakEvenStatus.INCONCLUSIVE
    ]
    for case in (*turns, *(case for case in others if case.status is BreakEvenStatus.PAYS_THROUGHOUT)):
        verdict = case.finding.break_even["output_tokens_per_s"]
        parts.append(f"On {label(case.condition, among)} it {verdict.sentence}.")
    return "".join(f" {part}" for part in parts)


def _known(case: _Case) -> str:
    """` (it surely costs at 8, 32)`: what an unsettled case says all the same."""
    verdict = case.finding.break_even["output_tokens_per_s"]
    for levels, word in ((verdict.sure_losses, "costs"), (verdict.sure_gains, "gains")):
        if levels:
            return f" (it {word} at {spans(levels, verdict.tested_levels)})"
    return ""
