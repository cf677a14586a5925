"""From cells to findings: the whole analysis of a run."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from loadgen.analysis.answer import answer
from loadgen.analysis.breakeven import find_break_even
from loadgen.analysis.check_run import run_checks
from loadgen.analysis.checks import JudgedPair, contexts_of, judge
from loadgen.analysis.cost_notes import cost_notes
from loadgen.analysis.explain import explain
from loadgen.analysis.goal import Goal, SloTable, goal_of
from loadgen.analysis.ladder import LadderArm, ladder_of
from loadgen.analysis.levels import level_finding, level_stat
from loadgen.analysis.model import BreakEven, ConditionFinding, Findings, ProfileFinding, Recommendation
from loadgen.analysis.pairs import Pair, Pairing, pair_cells, sessions_of
from loadgen.analysis.ratios import BREAK_EVEN_MEASURES, MIN_N, Measure, log_ratios, session_means
from loadgen.analysis.recommendation import Situation, recommend, schedules
from loadgen.analysis.schedule_answer import ladder_answer
from loadgen.analysis.schedule_ladder import LadderFinding
from loadgen.analysis.server_words import largest, oldest_version, whole
from loadgen.analysis.shifts import common_shifts
from loadgen.analysis.step_points import LevelSteps, graph_limits, level_steps
from loadgen.analysis.stepcost import GRAPH_LIMIT
from loadgen.analysis.trend import LEARNERS, trend_note, trend_over_repeats
from loadgen.store.model import CellKey, CellResult, Condition, Manifest, ServerFacts

NAMED = 3
"""So many cells are named in a note; the rest is counted."""


def analyse(
    manifest: Manifest,
    cells: Sequence[CellResult],
    servers: Sequence[ServerFacts] = (),
    *,
    interrupted: bool = False,
    slo: SloTable | None = None,
    failed: Collection[CellKey] = (),
) -> Findings:
    """What the run says. The order of `cells` changes nothing; cells without a partner are named in the notes. `slo`:
    the verdicts on the limits of the run's goal, if it has any. `failed`: cells that were tried and not measured.
    """
    contexts = contexts_of(manifest, cells)
    pairings = pair_cells(cells, manifest.against)
    judged = {id(pairing): [judge(pair, contexts) for pair in pairing.pairs] for pairing in pairings}
    conditions = tuple(
        ConditionFinding(
            condition,
            tuple(
                _profile(pairing, judged[id(pairing)], manifest)
                for pairing in sorted(pairings, key=lambda one: _rank(one.profile, manifest.profiles))
                if pairing.condition == condition
            ),
        )
        for condition in _conditions(manifest, pairings)
    )
    situation = situation_of(manifest, servers, slo)
    tried = {*failed, *(key for pairing in pairings for key in pairing.alone)}
    ladders = tuple(_with_lost_levels(one, tried) for one in schedules(conditions, situation))
    indicative = any(b.indicative for c in conditions for p in c.profiles for b in p.break_even.values())
    return Findings(
        run_id=manifest.run_id,
        engine=manifest.engine,
        simulated=manifest.simulated,
        interrupted=interrupted,
        vllm_version=situation.version,
        model=next((server.model for server in servers), None),
        against=manifest.against,
        conditions=conditions,
        recommendation=_as_sure_as_it_is(recommend(conditions, situation), interrupted, indicative),
        answer=(
            ladder_answer(ladders, simulated=manifest.simulated, interrupted=interrupted, indicative=indicative)
            if ladders
            else answer(
                conditions,
                simulated=manifest.simulated,
                interrupted=interrupted,
                failed=tried,
            )
        ),
        checks=run_checks(manifest, servers),
        notes=(
            *_notes(pairings),
            *_acceptance_notes(conditions),
            *cost_notes(conditions, _steps(pairings, judged, manifest, servers)),
            *_trend_notes(pairings, judged, manifest),
        ),
        ladders=ladders,
    )


def _with_lost_levels(ladder: LadderFinding, tried: Collection[CellKey]) -> LadderFinding:
    """The ladder with the levels that were tried and have no pair of cells among those without a verdict."""
    known = {level.concurrency for level in ladder.schedule.levels}
    lost = {key.level for key in tried if key.condition == ladder.condition} - known
    return replace(ladder, unsettled=tuple(sorted({*ladder.unsettled, *lost})))


def _as_sure_as_it_is(found: Recommendation | None, interrupted: bool, indicative: bool) -> Recommendation | None:
    """The advice with what keeps it from being settled."""
    if found is None:
        return None
    marks = ["Interrupted: cells are missing."] if interrupted else []
    marks += ["Indicative only: measure with three repeats."] if indicative else []
    return replace(found, why=" ".join([found.why, *marks]))


def _profile(pairing: Pairing, judged: Sequence[JudgedPair], manifest: Manifest) -> ProfileFinding:
    by_level = {level: [one for one in judged if one.pair.key.level == level] for level in pairing.levels()}
    valid = {level: [one.pair for one in found if one.valid] for level, found in by_level.items()}
    return ProfileFinding(
        profile=pairing.profile,
        method=manifest.methods.get(pairing.profile, "none"),
        levels=explain([(level_finding(level, found), valid[level]) for level, found in by_level.items()]),
        break_even={measure.name: _break_even(valid, measure, manifest) for measure in BREAK_EVEN_MEASURES},
    )


def _break_even(valid: Mapping[int, Sequence[Pair]], measure: Measure, manifest: Manifest) -> BreakEven:
    stats = [level_stat(level, pairs, measure) for level, pairs in valid.items()]
    seconds = {level: _pair_seconds(pairs) for level, pairs in valid.items() if pairs}
    looks = manifest.settings.get("looks", 1)
    sessions = [session_means(log_ratios(pairs, measure)) for pairs in valid.values()]
    return find_break_even(
        [stat for stat in stats if stat is not None],
        quick=manifest.quick,
        pair_seconds=seconds,
        looks=looks if isinstance(looks, int) and looks > 1 else 1,
        shifts=common_shifts(sessions) if len({number for level in sessions for number in level}) >= MIN_N else (),
    )


def _pair_seconds(pairs: Sequence[Pair]) -> float:
    """Mean measured seconds of one pair: both windows."""
    return math.fsum(pair.baseline.window_s + pair.profile.window_s for pair in pairs) / len(pairs)


def _conditions(manifest: Manifest, pairings: Sequence[Pairing]) -> tuple[Condition, ...]:
    """The conditions that have cells, as asked for first."""
    found = sorted({pairing.condition for pairing in pairings})
    asked = [condition for condition in manifest.conditions if condition in found]
    return (*asked, *(condition for condition in found if condition not in asked))


def _rank(profile: str, profiles: Sequence[str]) -> tuple[int, str]:
    return (profiles.index(profile) if profile in profiles else len(profiles), profile)


def situation_of(manifest: Manifest, servers: Sequence[ServerFacts], slo: SloTable | None = None) -> Situation:
    """What the advice depends on beside the figures. Limits whose verdicts are not given are unresolved everywhere."""
    goal = goal_of(manifest)
    return Situation(
        simulated=manifest.simulated,
        methods=manifest.methods,
        num_speculative_tokens=manifest.num_speculative_tokens,
        version=oldest_version(servers),
        max_num_seqs=whole(servers, "max_num_seqs"),
        data_parallel=largest(servers, "data_parallel_size"),
        max_graph_size={
            server.profile: size for server in servers if (size := whole([server], "max_graph_size")) is not None
        },
        ladder=ladder_of(manifest) or ({} if goal == Goal() else _single_rungs(manifest)),
        objective=goal.objective,
        slo=(slo or SloTable(goal.slos)) if goal.slos else None,
        against=manifest.against,
    )


def _single_rungs(manifest: Manifest) -> dict[str, LadderArm]:
    """Each profile as a ladder of its one K: break-evens know no other goal than throughput without limits."""
    return {
        name: LadderArm(name, k)
        for name, k in manifest.num_speculative_tokens.items()
        if name in manifest.profiles and k > 0 and not name.startswith("cost-probe")
    }


def _notes(pairings: Sequence[Pairing]) -> tuple[str, ...]:
    notes = []
    for pairing in pairings:
        where = f"{pairing.profile} on {pairing.condition.workload}"
        if pairing.alone:
            names = ", ".join(str(key) for key in pairing.alone[:NAMED])
            names += f", and {len(pairing.alone) - NAMED} more" if len(pairing.alone) > NAMED else ""
            notes.append(f"{where}: {len(pairing.alone)} cells have no baseline partner and are left out ({names})")
        if pairing.pairs and sessions_of(pairing.pairs) < MIN_N:
            notes.append(
                f"{where}: intervals are within one server start, for fewer than {MIN_N} sessions were measured"
            )
    return tuple(notes)


def _steps(
    pairings: Sequence[Pairing],
    judged: Mapping[int, Sequence[JudgedPair]],
    manifest: Manifest,
    servers: Sequence[ServerFacts],
) -> dict[tuple[Condition, str], tuple[LevelSteps, ...]]:
    """Both servers' mean steps by level, for each condition and profile."""
    limits = graph_limits(servers)
    plain = limits.get(manifest.against, GRAPH_LIMIT)
    return {
        (pairing.condition, pairing.profile): level_steps(
            judged[id(pairing)], plain, limits.get(pairing.profile, GRAPH_LIMIT)
        )
        for pairing in pairings
    }


def _trend_notes(
    pairings: Sequence[Pairing], judged: Mapping[int, Sequence[JudgedPair]], manifest: Manifest
) -> tuple[str, ...]:
    """Cold and warm apart, for methods that remember earlier responses."""
    notes = []
    for pairing in pairings:
        if manifest.methods.get(pairing.profile) not in LEARNERS:
            continue
        valid = [one.pair for one in judged[id(pairing)] if one.valid]
        trend = trend_over_repeats(
            {level: [pair for pair in valid if pair.key.level == level] for level in pairing.levels()}
        )
        if trend is not None:
            notes.append(f"{pairing.profile} on {pairing.condition.workload}: {trend_note(trend)}")
    return tuple(notes)


def _acceptance_notes(conditions: Sequence[ConditionFinding]) -> tuple[str, ...]:
    """Where acceptance cannot be believed, and why."""
    found = {
        f"{profile.profile} on {condition.condition.workload}: acceptance says nothing of real text, for outputs "
        "repeat themselves (degenerate-output)"
        for condition in conditions
        for profile in condition.profiles
        for level in profile.levels
        for check in level.checks
        if check.name == "degenerate-output"
    }
    return tuple(sorted(found))
