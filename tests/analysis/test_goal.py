"""Throughput within limits: what does not surely keep them at a load is no choice there, and is said."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from loadgen.analysis.capacity_model import LoadPoint, RequestTimes, Slo, Verdict
from loadgen.analysis.findings import analyse
from loadgen.analysis.goal import Goal, SloTable, finding_words, goal_of, milliseconds, more_seconds, slo_table
from loadgen.analysis.schedule import Choice, make_schedule
from loadgen.analysis.schedule_edges import Rung
from loadgen.analysis.schedule_slo import out_words
from loadgen.analysis.verify_conclude import verify
from loadgen.analysis.verify_model import Claim, Role, Verification
from loadgen.analysis.verify_model import Verdict as Verified
from loadgen.analysis.verify_words import final_words
from loadgen.profiles.model import BatchSchedule
from loadgen.store.codec import builtins, decode, encode
from loadgen.store.model import Condition, Manifest

CODE = Condition("code-edit", 512, 0.0)
TPOT = Slo("tpot", 0.99, 0.030)
ENOUGH = 400
LEVELS = (1, 8, 32)


def rungs(speedups: Mapping[int, float], out: tuple[int, ...] = ()) -> list[Rung]:
    import math

    return [Rung(level, math.log(value), 0.004, float(level), out=level in out) for level, value in speedups.items()]


def point(level: int, tpot_s: float, n: int = ENOUGH) -> LoadPoint:
    times = tuple(RequestTimes(0.1, tpot_s, 1.0) for _ in range(n))
    return LoadPoint(level, 10.0, 100.0, tuple(0.1 for _ in range(n)), times)


def table(tpots: Mapping[str, Mapping[int, float]], n: int = ENOUGH, slo: Slo = TPOT) -> SloTable:
    points = {(CODE, name): tuple(point(level, value, n) for level, value in by.items()) for name, by in tpots.items()}
    return slo_table([slo], points)


def test_unresolved_is_not_met() -> None:
    found = table({"ngram": {8: 0.020}}, n=100)
    assert found.at(CODE, "ngram", 8).verdict is Verdict.UNRESOLVED
    assert not found.met(CODE, "ngram", 8)
    assert finding_words(found.at(CODE, "ngram", 8).findings[0]) == "tpot_p99 has 100 requests and needs 368"
    assert more_seconds(found.at(CODE, "ngram", 8)) == pytest.approx(26.8)
    assert table({"ngram": {8: 0.020}}).met(CODE, "ngram", 8)
    assert not table({"ngram": {8: 0.040}}).met(CODE, "ngram", 8)
    assert not table({}).met(CODE, "ngram", 8)
    assert more_seconds(table({}).at(CODE, "ngram", 8)) is None


def test_what_misses_the_limits_at_a_load_is_no_choice_there() -> None:
    speedups = {1: 1.6, 8: 1.4, 32: 1.2}
    free = make_schedule({4: rungs(speedups)}, max_num_seqs=256)
    bound = make_schedule({4: rungs(speedups, out=(32,))}, max_num_seqs=256)
    assert free is not None
    assert bound is not None
    assert (free.choice, free.in_flight) == (Choice.STATIC, ((1, 256, 4),))
    assert [level.k for level in bound.levels] == [4, 4, 0]
    # The edge stands next to the load that keeps them: nothing is known of those in between.
    assert bound.in_flight == ((1, 8, 4), (9, 256, 0))
    assert bound.levels[-1].static_out
    assert not bound.levels[0].static_out
    assert bound.unmet == ()


def test_a_slower_setting_is_needed_where_only_it_keeps_them() -> None:
    speedups = {1: 1.3, 8: 0.95, 32: 0.9}
    found = make_schedule({4: rungs(speedups)}, max_num_seqs=256, plain_out=(8,))
    assert found is not None
    assert [level.k for level in found.levels] == [4, 4, 0]
    assert found.levels[1].none_out


def test_where_no_setting_keeps_them_the_objective_alone_chooses() -> None:
    speedups = {1: 1.6, 8: 1.4, 32: 0.8}
    found = make_schedule({4: rungs(speedups, out=(1, 32))}, max_num_seqs=256, plain_out=(32,))
    assert found is not None
    assert found.unmet == (32,)
    assert [level.k for level in found.levels] == [0, 4, 0]


LADDER = {
    "ngram-k2": {"of": "ngram", "k": 2, "constant_schedule": False},
    "ngram-k4": {"of": "ngram", "k": 4, "constant_schedule": False},
}


def plan(manifest: Any, goal: Goal = Goal(slos=(TPOT,))) -> Manifest:  # noqa: B008 (frozen)
    made: Manifest = manifest(("baseline", *LADDER), settings={"ladder": LADDER, "goal": builtins(goal)})
    methods = dict.fromkeys(LADDER, "ngram") | {"baseline": "none"}
    return replace(made, methods=methods, num_speculative_tokens={"ngram-k2": 2, "ngram-k4": 4})


def cells(cell: Any, curves: Mapping[str, Mapping[int, float]]) -> list[Any]:
    found = []
    for level in LEVELS:
        for repeat, factor in enumerate((0.995, 1.0, 1.005)):
            base = 200.0 * level**0.9
            found.append(cell("baseline", level, repeat, base))
            found += [cell(name, level, repeat, base * curve[level] * factor) for name, curve in curves.items()]
    return found


CURVES = {"ngram-k2": {1: 1.4, 8: 1.25, 32: 1.1}, "ngram-k4": {1: 1.7, 8: 1.2, 32: 0.8}}


def test_a_goal_survives_the_manifest(manifest: Any) -> None:
    assert goal_of(plan(manifest)) == Goal("throughput", (TPOT,))
    assert goal_of(manifest()) == Goal()
    assert Goal("tpot", (TPOT, Slo("ttft", 0.9, 12.0))).words == "tpot within tpot_p99 30 ms and ttft_p90 12 s"


def test_the_answer_says_the_limits_and_where_nothing_keeps_them(cell: Any, manifest: Any) -> None:
    slo = table(
        {
            "baseline": {1: 0.020, 8: 0.025, 32: 0.050},
            "ngram-k2": {1: 0.015, 8: 0.020, 32: 0.045},
            "ngram-k4": {1: 0.040, 8: 0.050, 32: 0.060},
        }
    )
    findings = analyse(plan(manifest), cells(cell, CURVES), slo=slo)
    assert findings.answer == (
        "ngram on code-edit: best within tpot_p99 30 ms with K = 2 at every tested load (no setting surely keeps that "
        "at 32)."
    )
    advice = findings.recommendation
    assert advice is not None
    assert advice.value == 2
    assert advice.holds_for.endswith("1 to 32 concurrent requests, by throughput within tpot_p99 30 ms")
    assert advice.why.startswith(
        "No setting surely keeps tpot_p99 30 ms at 32 (every one misses it at 32): there the choice is by throughput"
    )
    (ladder,) = findings.ladders
    assert out_words(ladder)[0] == "1: K = 4 misses it, tpot_p99 40 ms (40 ms to 40 ms)"


def test_too_few_requests_are_told_with_what_it_takes(cell: Any, manifest: Any) -> None:
    same = dict.fromkeys(LEVELS, 0.02)
    slo = table({"baseline": same, "ngram-k2": same, "ngram-k4": same}, n=40)
    advice = analyse(plan(manifest), cells(cell, CURVES), slo=slo).recommendation
    assert advice is not None
    assert advice.why.startswith(
        "No setting surely keeps tpot_p99 30 ms at any tested load (it is unresolved at 1, 8, 32, at 1 unresolved for "
        "every setting: 40 of the 368 requests that tpot_p99 needs (about 33 s more of measuring each))"
    )
    # Without verdicts nothing is taken for met.
    blind = analyse(plan(manifest), cells(cell, CURVES)).recommendation
    assert blind is not None
    assert "at 1 no speculation is unresolved, no single requests" in blind.why


def test_one_k_is_a_ladder_where_a_goal_is_set(cell: Any, manifest: Any) -> None:
    made = replace(manifest(settings={"goal": builtins(Goal("tpot"))}), num_speculative_tokens={"ngram": 4})
    found = list(cells(cell, {"ngram": CURVES["ngram-k4"]}))
    findings = analyse(made, found)
    assert [ladder.objective for ladder in findings.ladders] == ["tpot"]
    assert analyse(replace(made, settings={}), found).ladders == ()


RANGES: BatchSchedule = ((1, 12, 4), (13, 256, 0))
ARMS = {Role.NONE: "baseline", Role.STATIC: "ngram-k4", Role.SCHEDULE: "ngram-schedule"}
CLAIM = Claim(Choice.STATIC, "ngram", CODE, 4, (), ((1, 256, 4),), (), ARMS, slos=(TPOT,), tested=LEVELS)


def verified(
    cell: Any, manifest: Any, tpots: Mapping[str, float], claim: Claim = CLAIM, n: int = ENOUGH
) -> Verification:
    curves = {"ngram-k4": dict.fromkeys(LEVELS, 1.2), "ngram-schedule": dict.fromkeys(LEVELS, 1.3)}
    slo = table({name: dict.fromkeys(LEVELS, value) for name, value in tpots.items()}, n)
    made = manifest(("baseline", "ngram-k4", "ngram-schedule"))
    found = verify(claim, made, cells(cell, curves), margin=0.02, slo=slo)
    assert decode(encode(found), Verification) == found
    return found


def test_a_faster_rival_that_misses_the_limits_is_none(cell: Any, manifest: Any) -> None:
    found = verified(cell, manifest, {"baseline": 0.02, "ngram-k4": 0.02, "ngram-schedule": 0.04})
    assert found.verdict is Verified.HOLDS
    assert {one.other for one in found.comparisons} == {Role.NONE}
    assert found.sentence.endswith(", and keeps tpot_p99 30 ms.")
    assert "and keeps tpot_p99 30 ms)" in final_words(found)
    allowed = verified(cell, manifest, {"baseline": 0.02, "ngram-k4": 0.02, "ngram-schedule": 0.02})
    assert allowed.verdict is Verified.FAILS


def test_a_rival_that_is_unresolved_leaves_it_open(cell: Any, manifest: Any) -> None:
    found = verified(cell, manifest, {"baseline": 0.02, "ngram-k4": 0.02})
    assert found.verdict is Verified.OPEN


def test_a_claim_that_misses_its_limits_does_not_hold(cell: Any, manifest: Any) -> None:
    found = verified(cell, manifest, {"baseline": 0.02, "ngram-k4": 0.04, "ngram-schedule": 0.04})
    assert found.verdict is Verified.FAILS
    assert "does not hold: it misses tpot_p99 30 ms at 1 (tpot_p99 40 ms (40 ms to 40 ms))" in found.sentence
    assert found.sentence.endswith("leave speculation out instead.")


def test_a_claim_whose_limits_are_unresolved_says_how_long(cell: Any, manifest: Any) -> None:
    tpots = {"baseline": 0.02, "ngram-k4": 0.02, "ngram-schedule": 0.04}
    slower = replace(CLAIM, arms={role: name for role, name in ARMS.items() if role is not Role.SCHEDULE})
    found = verified(cell, manifest, tpots, slower, n=100)
    assert found.verdict is Verified.OPEN
    assert "tpot_p99 30 ms is unresolved at 1, 8, 32 (tpot_p99 has 100 requests and needs 368 at 1; about" in (
        found.sentence
    )
    assert found.more_s == pytest.approx(3 * 26.8)
    assert "of measuring would tell" in final_words(found)


def test_where_the_run_found_no_setting_the_claim_is_by_throughput(cell: Any, manifest: Any) -> None:
    everywhere = replace(CLAIM, unmet=LEVELS)
    found = verified(cell, manifest, dict.fromkeys(ARMS.values(), 0.05), everywhere)
    assert found.verdict is Verified.FAILS
    assert "worse at 1, 8, 32" in found.sentence
    assert [everywhere.within(9), replace(CLAIM, unmet=(8,)).within(9), replace(CLAIM, unmet=(8,)).within(30)] == [
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.03, "30 ms"), (0.9996, "1000 ms"), (1.0, "1000 ms"), (2.5, "2500 ms"), (10.0, "10 s"), (1234.0, "1234 s")],
)
def test_limits_are_written_without_an_exponent(seconds: float, words: str) -> None:
    assert milliseconds(seconds) == words
