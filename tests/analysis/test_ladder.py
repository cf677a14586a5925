"""Several K of one method in one run: the findings, the answer, the advice, and checks that know a ladder."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from loadgen.analysis.checks import contexts_of, judge
from loadgen.analysis.findings import analyse, situation_of
from loadgen.analysis.ladder import LadderArm, ladder_of
from loadgen.analysis.pairs import pair_cells
from loadgen.analysis.recommendation import advise, schedules
from loadgen.analysis.schedule import Choice
from loadgen.errors import UsageError
from loadgen.store.model import CellResult, Condition, Manifest, ServerFacts

LADDER = {
    "ngram-k2": {"of": "ngram", "k": 2, "constant_schedule": False},
    "ngram-k4": {"of": "ngram", "k": 4, "constant_schedule": False},
}
COSTS = {
    "ngram-schedule-k0": {"of": "ngram", "k": 0, "constant_schedule": True},
    "ngram-schedule-k2": {"of": "ngram", "k": 2, "constant_schedule": True},
    "ngram-schedule-k4": {"of": "ngram", "k": 4, "constant_schedule": True},
}
K2 = {1: 1.4, 8: 1.25, 32: 1.1}
K4 = {1: 1.7, 8: 1.2, 32: 0.8}


def plan(manifest: Any, ladder: Mapping[str, Any] = LADDER) -> Manifest:
    made: Manifest = manifest(("baseline", *ladder), settings={"ladder": dict(ladder)})
    methods = dict.fromkeys(ladder, "ngram") | {"baseline": "none"}
    return replace(made, methods=methods, num_speculative_tokens=dict.fromkeys(ladder, 4))


def cells_of(cell: Any, curves: Mapping[str, Mapping[int, float]]) -> list[CellResult]:
    found = []
    for level in sorted({level for curve in curves.values() for level in curve}):
        base = 200.0 * level**0.9
        for repeat, factor in enumerate((0.995, 1.0, 1.005)):
            found.append(cell("baseline", level, repeat, base))
            for name, curve in curves.items():
                silent = name.endswith("k0")
                found.append(cell(name, level, repeat, base * curve[level] * factor, speculates=not silent))
    return found


def test_a_ladder_is_read_from_the_manifest(manifest: Any) -> None:
    assert ladder_of(plan(manifest)) == {"ngram-k2": LadderArm("ngram", 2), "ngram-k4": LadderArm("ngram", 4)}
    assert ladder_of(manifest()) == {}
    assert ladder_of(manifest(settings={"ladder": None})) == {}


def test_the_answer_names_the_best_k_by_load(cell: Any, manifest: Any) -> None:
    findings = analyse(plan(manifest), cells_of(cell, {"ngram-k2": K2, "ngram-k4": K4}))
    assert findings.answer == ("ngram on code-edit: best with K = 4 up to 5 concurrent requests, K = 2 from 6 on.")
    (ladder,) = findings.ladders
    assert (ladder.of, ladder.method, ladder.costs_measured, ladder.unsettled) == ("ngram", "ngram", False, ())
    assert findings.recommendation is not None
    assert findings.recommendation.setting == "num_speculative_tokens_per_batch_size"
    assert findings.recommendation.value == [[1, 5, 4], [6, 256, 2]]
    assert "disable_by_batch_size would have had no use here" in findings.recommendation.why


def test_costs_that_eat_the_gain_turn_the_advice(cell: Any, manifest: Any) -> None:
    curves = {
        "ngram-k2": K2,
        "ngram-k4": K4,
        "ngram-schedule-k0": dict.fromkeys(K2, 0.9),
        "ngram-schedule-k2": {level: 0.93 * ratio for level, ratio in K2.items()},
        "ngram-schedule-k4": {level: 0.93 * ratio for level, ratio in K4.items()},
    }
    made = plan(manifest, LADDER | COSTS)
    findings = analyse(made, cells_of(cell, curves))
    advice = advise(findings.conditions, situation_of(made, ()))
    assert advice is not None
    assert findings.ladders[0].costs_measured
    assert advice.choice is Choice.STATIC
    assert advice.static_k == 2
    assert advice.in_flight == ((1, 256, 2),)
    assert advice.can_schedule


def test_tpot_may_want_another_schedule(cell: Any, manifest: Any) -> None:
    made = plan(manifest)
    cells = [
        # Slower for a user at 32 with K = 2, whatever the throughput says.
        replace(one, tpot_s=replace(one.tpot_s, mean=2.0 * (one.tpot_s.mean or 0.0)))
        if one.key.profile == "ngram-k2" and one.key.level == 32
        else one
        for one in cells_of(cell, {"ngram-k2": K2, "ngram-k4": K4})
    ]
    conditions = analyse(made, cells).conditions
    by_throughput = schedules(conditions, situation_of(made, ()))[0].schedule
    asked = replace(made, settings=made.settings | {"goal": {"objective": "tpot"}})
    by_tpot = schedules(conditions, situation_of(asked, ()))[0].schedule
    assert by_throughput.levels[-1].k == 2
    assert by_tpot.levels[-1].k == 0


def test_a_level_without_a_verdict_for_one_k_is_named(cell: Any, manifest: Any) -> None:
    cells = [
        replace(one, client=replace(one.client, cpu_share=1.5))
        if one.key.profile == "ngram-k2" and one.key.level == 8
        else one
        for one in cells_of(cell, {"ngram-k2": K2, "ngram-k4": K4})
    ]
    findings = analyse(plan(manifest), cells)
    assert findings.ladders[0].unsettled == (8,)
    assert "(no verdict at 8)" in findings.answer


def test_a_ladder_in_which_nothing_gains_says_leave_it_out(cell: Any, manifest: Any) -> None:
    losing = dict.fromkeys(K2, 0.8)
    findings = analyse(plan(manifest), cells_of(cell, {"ngram-k2": losing, "ngram-k4": losing}))
    assert findings.answer == "ngram on code-edit: no K of 2, 4 pays off beyond noise."
    assert findings.recommendation is not None
    assert findings.recommendation.setting == "speculative-config"
    assert "disable_by_batch_size would have been 1." in findings.recommendation.why


def test_k_0_drafts_nothing_on_purpose(cell: Any, manifest: Any) -> None:
    curves = dict.fromkeys((*LADDER, *COSTS), K2)
    cells = cells_of(cell, curves)
    contexts = contexts_of(plan(manifest, LADDER | COSTS), cells)
    for pairing in pair_cells(cells, "baseline"):
        assert not [check for pair in pairing.pairs for check in judge(pair, contexts).profile_checks]
    drafting = [cell("ngram-schedule-k0", 8, 0, 1000.0), cell("baseline", 8, 0, 1000.0)]
    (pairing,) = pair_cells(drafting, "baseline")
    assert [check.name for check in judge(pairing.pairs[0], contexts).profile_checks] == ["baseline-drafts"]


def test_servers_that_differ_alike_share_one_check(cell: Any, manifest: Any) -> None:
    def facts(name: str, mode: str) -> ServerFacts:
        return ServerFacts(name, 0, "http://127.0.0.1:1", "m", "0.32.0", 1.0, (), {"graph_mode": mode})

    servers = [facts("baseline", "FULL"), facts("ngram-k4", "PIECEWISE"), facts("ngram-k2", "PIECEWISE")]
    checks = analyse(plan(manifest), cells_of(cell, {"ngram-k2": K2, "ngram-k4": K4}), servers).checks
    assert [check.cause for check in checks] == ["graph_mode is PIECEWISE for ngram-k2, ngram-k4 and FULL for baseline"]


@pytest.mark.parametrize(("version", "choice"), [("0.32.0", Choice.SCHEDULE), ("0.20.0", Choice.TWO_POOLS)])
def test_what_is_claimed_fits_the_version(version: str, choice: Choice, cell: Any, manifest: Any) -> None:
    made = plan(manifest)
    servers = [ServerFacts("baseline", 0, "http://127.0.0.1:1", "m", version, 1.0, (), {})]
    curves = {"ngram-k2": {1: 1.4, 8: 1.2, 32: 0.9}, "ngram-k4": {1: 1.7, 8: 1.15, 32: 0.8}}
    conditions = analyse(made, cells_of(cell, curves), servers).conditions
    advice = advise(conditions, situation_of(made, servers))
    assert advice is not None
    assert (advice.choice, advice.can_schedule) == (choice, choice is Choice.SCHEDULE)
    assert advice.edges


@pytest.mark.parametrize(
    ("key", "junk"),
    [
        ("ladder", ["ngram-k4"]),
        ("ladder", {"ngram-k4": 4}),
        ("ladder", {"ngram-k4": {"of": "ngram"}}),
        ("ladder", {"ngram-k4": {"of": "ngram", "k": "four"}}),
        ("ladder", {"ngram-k4": {"of": "ngram", "k": -4}}),
        ("goal", "fast"),
        ("goal", {"objective": "speed"}),
        ("goal", {"slos": [{"limit_s": "soon"}]}),
    ],
)
def test_junk_in_the_settings_is_one_sentence(key: str, junk: object, cell: Any, manifest: Any) -> None:
    with pytest.raises(UsageError, match=rf"settings\.{key} in the manifest of .* repair or remove it"):
        analyse(manifest(settings={key: junk}), [cell("baseline"), cell("ngram")])


GRID = (1, 2, 4, 8, 16, 32)
CROSSED = {
    "ngram-k1": (1.5, 1.4, 1.2, 1.1, 1.0, 0.9),
    "ngram-k4": (1.1, 1.15, 1.2, 1.25, 1.3, 1.35),
    "ngram-schedule-k0": (0.95,) * 6,
    "ngram-schedule-k1": (1.4, 1.3, 1.1, 1.0, 0.9, 0.8),
    "ngram-schedule-k4": (1.0, 1.05, 1.1, 1.15, 1.2, 1.25),
}


def test_a_static_k_is_not_called_as_good_where_a_schedule_is_better(cell: Any, manifest: Any) -> None:
    ladder = {name: {"of": "ngram", "k": int(name[-1]), "constant_schedule": "schedule" in name} for name in CROSSED}
    curves = {name: dict(zip(GRID, values, strict=True)) for name, values in CROSSED.items()}
    findings = analyse(plan(manifest, ladder), cells_of(cell, curves))
    advice = findings.recommendation
    assert advice is not None
    assert (advice.setting, advice.value) == ("num_speculative_tokens", 4)
    assert "as good as any schedule" not in advice.why
    assert "better than static K = 4 at some loads (1.27x at 1, 1.13x at 2)" in advice.why
    assert "loses elsewhere (0.92x at 4)" in advice.why
    assert "K = 1 up to" in findings.answer
    assert "(on one server static K = 4, though a schedule is 1.27x of it at 1)" in findings.answer


def test_the_other_workload_is_told(cell: Any, manifest: Any) -> None:
    made = plan(manifest)
    chat = Condition("chat", 128, 0.0)
    losing = dict.fromkeys(K2, 0.75)
    cells = cells_of(cell, {"ngram-k2": K2, "ngram-k4": K4})
    cells += [
        replace(one, key=replace(one.key, condition=chat))
        for one in cells_of(cell, {"ngram-k2": losing, "ngram-k4": losing})
    ]
    advice = analyse(replace(made, conditions=(*made.conditions, chat)), cells).recommendation
    assert advice is not None
    told = "On chat: no K of 2, 4 pays off beyond noise: send that to a server without speculation."
    assert told in advice.why


def test_a_ladder_of_one_repeat_is_indicative(cell: Any, manifest: Any) -> None:
    cells = [one for one in cells_of(cell, {"ngram-k2": K2, "ngram-k4": K4}) if one.key.repeat == 0]
    advice = analyse(plan(manifest), cells).recommendation
    assert advice is not None
    assert "Indicative only" in advice.why


def test_loads_beyond_the_usual_end_stay_within_the_last_range(cell: Any, manifest: Any) -> None:
    names = {"ngram-k1": LADDER["ngram-k2"] | {"k": 1}, "ngram-k4": LADDER["ngram-k4"]}
    curves = {"ngram-k1": {1: 1.4, 256: 1.2, 512: 0.7}, "ngram-k4": {1: 1.6, 256: 1.3, 512: 0.5}}
    findings = analyse(plan(manifest, names), cells_of(cell, curves))
    assert "no speculation from" in findings.answer
    assert findings.recommendation is not None
    assert findings.recommendation.value[-1][1] == 512  # type: ignore[index]  # a schedule's last range


def test_a_level_without_baseline_cells_has_no_verdict(cell: Any, manifest: Any) -> None:
    cells = [
        one
        for one in cells_of(cell, {"ngram-k2": K2, "ngram-k4": K4})
        if one.key.profile != "baseline" or one.key.level != 32
    ]
    assert "(no verdict at 32)" in analyse(plan(manifest), cells).answer
