"""Fleets, mixes, weaker acceptance, schedules and the advice, from made-up levels whose answer is known."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from loadgen.analysis.capacity import make_plan
from loadgen.analysis.capacity_change import compose, weaken, weaker_factor
from loadgen.analysis.capacity_fleet import fleet_of, servers_for
from loadgen.analysis.capacity_model import Demand, Hardware, LoadPoint, OpenPoint, Plan, RequestTimes, Slo, Verdict
from loadgen.analysis.capacity_offer import Setting, Wish, offer
from loadgen.analysis.capacity_samples import Span, load_points, window_of
from loadgen.analysis.capacity_search import ceiling_of, judge_level
from loadgen.analysis.findings import analyse
from loadgen.errors import UsageError
from loadgen.store.model import CellKey, CellResult, Condition, Manifest

CODE, CHAT = Condition("code-edit", 512, 0.0), Condition("chat", 60, 0.0)
TPOT = Slo("tpot", 0.9, 0.02)
SLOS = (Slo("ttft", 0.9, 0.5), TPOT)


def point(
    level: int, tpot_s: float, *, ttft_s: float = 0.05, tokens: int = 101, steps: float | None = None
) -> LoadPoint:
    e2e = ttft_s + (tokens - 1) * tpot_s
    times = RequestTimes(ttft_s, tpot_s, e2e)
    return LoadPoint(level, level / e2e, level * tokens / e2e, (ttft_s,) * 400, (times,) * 400, steps, "ngram")


def points(factor: float = 1.0, steps: float | None = None) -> tuple[LoadPoint, ...]:
    """TPOT of 5 ms plus 1 ms per request in flight, times a factor: 20 ms at 15 without one."""
    return tuple(point(c, factor * (0.005 + 0.001 * c), steps=steps) for c in (1, 2, 4, 8, 16, 32))


def test_the_ceiling_is_below_the_first_miss() -> None:
    rows = [(float(v.level), v.verdict, v.findings) for v in (judge_level(p, SLOS) for p in points())]
    ceiling = ceiling_of(rows, len(SLOS))
    assert ceiling is not None
    assert (ceiling.surely, ceiling.by_estimate, ceiling.top, ceiling.open_ended) == (8, 8, 32, False)


def test_a_low_level_with_few_requests_does_not_make_a_resolved_one_unsure() -> None:
    few = replace(points()[0], begun=(0.05,) * 10, ended=points()[0].ended[:10])
    verdicts = [judge_level(p, SLOS) for p in (few, *points()[1:])]
    assert verdicts[0].verdict is Verdict.UNRESOLVED
    ceiling = ceiling_of([(float(v.level), v.verdict, v.findings) for v in verdicts], len(SLOS))
    assert ceiling is not None
    assert ceiling.surely == 8


def test_a_ceiling_at_the_top_level_is_open_ended() -> None:
    wish = Wish((Slo("tpot", 0.9, 1.0),), Demand(rate_per_s=1.0), Hardware())
    found = offer(CODE, Setting("baseline", "", points()), wish)
    assert found.ceiling.open_ended
    assert found.capacity is not None
    assert found.capacity.limited_by == "measured levels"


def test_users_within_objectives_follow_the_response_time_law() -> None:
    wish = Wish((TPOT,), Demand(users=400, think_s=20.0), Hardware())
    found = offer(CODE, Setting("baseline", "", points()), wish)
    assert found.capacity is not None
    assert found.capacity.at is not None
    at = found.capacity.at
    assert at.users == found.capacity.per_server
    assert at.in_flight == pytest.approx((at.users or 0) - at.rate_per_s * 20.0)
    # 20 ms are met with 15 in flight; fluctuations about the mean cost a part of that
    assert 7 < at.in_flight < 15
    assert found.fleet is not None
    assert found.fleet.servers == math.ceil(400 / (found.capacity.per_server or 1))


def test_measured_open_loop_rates_come_before_the_estimate() -> None:
    def opened(rate: float, tpot_s: float) -> OpenPoint:
        return OpenPoint(rate, rate, 100 * rate, 3.0, (RequestTimes(0.1, tpot_s, 0.1 + 100 * tpot_s),) * 400)

    setting = Setting("baseline", "", points(), (opened(2.0, 0.01), opened(4.0, 0.015), opened(6.0, 0.03)))
    found = offer(CODE, setting, Wish(SLOS, Demand(rate_per_s=20.0), Hardware()))
    assert found.capacity is not None
    assert (found.capacity.per_server, found.capacity.basis) == (4.0, "open-loop")
    assert found.fleet is not None
    assert (found.fleet.servers, found.fleet.with_headroom, found.fleet.with_spares) == (5, 6, 7)


def test_rates_that_only_confirm_the_estimate_do_not_replace_it() -> None:
    def opened(rate: float, tpot_s: float) -> OpenPoint:
        return OpenPoint(rate, rate, 100 * rate, 3.0, (RequestTimes(0.1, tpot_s, 0.1 + 100 * tpot_s),) * 400)

    wish = Wish(SLOS, Demand(rate_per_s=20.0), Hardware())
    plain = offer(CODE, Setting("baseline", "", points()), wish).capacity
    assert plain is not None
    assert plain.per_server is not None
    low, high = 0.5 * plain.per_server, 2 * plain.per_server
    cases = {(low, 0.01): plain, (high, 0.03): plain}
    for (rate, tpot), expected in cases.items():
        assert offer(CODE, Setting("baseline", "", points(), (opened(rate, tpot),)), wish).capacity == expected
    # more than the estimate was measured, and it holds: so much is sure, and the levels end there
    better = offer(CODE, Setting("baseline", "", points(), (opened(high, 0.01),)), wish).capacity
    assert better is not None
    assert (better.per_server, better.limited_by) == (high, "measured levels")
    # half of the estimate was measured, and it does not hold: nothing is left to say
    worse = offer(CODE, Setting("baseline", "", points(), (opened(low, 0.03),)), wish).capacity
    assert worse is not None
    assert worse.per_server is None


def test_spares_stand_on_top_of_headroom_and_all_gpus_cost() -> None:
    fleet = fleet_of(20.0, 4.0, Hardware(2, 0.2, 1, gpu_hour=2.0, gpu_watts=500.0), None)
    assert (fleet.servers, fleet.with_headroom, fleet.with_spares, fleet.gpus) == (5, 6, 7, 14)
    assert fleet.per_gpu == pytest.approx(20 / 14)
    assert fleet.cost_per_million_tokens is None
    assert servers_for(0.3, 0.1) == 3


def test_cost_and_energy_are_the_whole_fleets() -> None:
    wish = Wish(SLOS, Demand(rate_per_s=10.0), Hardware(1, 0.0, 1, gpu_hour=3.6, gpu_watts=1000.0))
    found = offer(CODE, Setting("baseline", "", points()), wish)
    assert found.fleet is not None
    assert found.fleet.tokens_per_s == pytest.approx(1010.0)
    # n GPUs at 3.6 an hour are n / 1000 a second; a million tokens take 1e6 / 1010 seconds
    assert found.fleet.cost_per_million_tokens == pytest.approx(found.fleet.gpus * 1e-3 * 1e6 / 1010)
    assert found.fleet.kwh_per_million_tokens == pytest.approx(found.fleet.gpus * 1e6 / 1010 / 3600)


def test_a_third_fewer_accepted_drafts_stretch_decoding_only() -> None:
    assert weaker_factor(2.5) == pytest.approx(2.0 / 2.5)
    before = point(8, 0.01, steps=2.5)
    after = weaken(before)
    assert after is not None
    assert after.ended[0].tpot_s == pytest.approx(0.0125)
    assert after.ended[0].ttft_s == before.ended[0].ttft_s
    # Little's law still holds at 8 in flight
    assert after.requests_per_s * after.ended[0].e2e_s == pytest.approx(8)
    assert weaken(point(8, 0.01, steps=None)) is None
    assert weaken(point(8, 0.01, steps=1.0)) is None


def test_weaker_acceptance_costs_servers() -> None:
    wish = Wish((TPOT,), Demand(rate_per_s=60.0), Hardware())
    found = offer(CODE, Setting("ngram", "K = 4", points(0.6, steps=2.5), drafts=True), wish)
    assert found.weaker is not None
    assert found.weaker.tokens_per_step_factor == pytest.approx(0.8)
    assert found.weaker.fleet is not None
    assert found.fleet is not None
    assert found.weaker.fleet.gpus > found.fleet.gpus
    assert offer(CODE, Setting("baseline", "", points()), wish).weaker is None


def test_a_schedule_takes_each_level_from_the_server_with_its_k() -> None:
    fast = tuple(replace(p, source="ngram") for p in points(0.8))
    plain = tuple(replace(p, source="baseline") for p in points())
    batches = {c: 0.9 * c for c in (1, 2, 4, 8, 16, 32)}
    made = compose([[1, 8, 4], [9, 256, 0]], batches, {4: fast, 0: plain})
    assert [(p.level, p.source) for p in made] == [
        (1, "ngram"),
        (2, "ngram"),
        (4, "ngram"),
        (8, "ngram"),
        (16, "baseline"),
        (32, "baseline"),
    ]
    assert compose([[1, 256, 2]], batches, {4: fast, 0: plain}) == ()


def test_a_window_opens_when_all_workers_hold_a_request() -> None:
    spans = [Span(float(start), start + 1.0, start + 0.1, 0.01, ok=True) for start in (3, 0, 1, 2)]
    assert window_of(spans, 2, 5.0) == (1.0, 6.0)
    assert window_of(spans, 5, 5.0) is None


RunFactory = Callable[..., list[CellResult]]
ManifestFactory = Callable[..., Manifest]


def spans_of(cells: Sequence[CellResult]) -> dict[CellKey, list[Span]]:
    """Requests in lockstep for each cell: five turns per worker, TPOT as the cell says."""
    found: dict[CellKey, list[Span]] = {}
    for cell in cells:
        tpot = cell.tpot_s.mean or 0.01
        whole = 0.05 + 127 * tpot
        found[cell.key] = [
            Span(turn * whole, (turn + 1) * whole, turn * whole + 0.05, tpot, ok=True)
            for turn in range(5)
            for _ in range(cell.key.level)
        ]
    return found


def plan_of(cells: Sequence[CellResult], manifest: Manifest, wish: Wish) -> Plan:
    points = load_points(manifest, cells, spans_of(cells))
    return make_plan(analyse(manifest, cells), manifest, points, {}, wish)


RATIOS = {1: 1.5, 2: 1.4, 4: 1.3, 8: 1.2, 16: 0.9, 32: 0.8}


def test_a_plan_names_each_setting_and_the_schedule(run_of: RunFactory, manifest: ManifestFactory) -> None:
    plan = plan_of(run_of(RATIOS), manifest(), Wish((Slo("tpot", 0.5, 0.02),), Demand(rate_per_s=50.0), Hardware()))
    assert [one.setting for one in plan.offers] == ["baseline", "ngram", "schedule"]
    assert plan.advice[0].setting in ("ngram", "schedule", "baseline")
    assert "per server" in plan.answer
    assert any("put together from static servers" in note for note in plan.notes)
    assert any("estimates" in note for note in plan.notes)


def test_a_schedule_is_put_together_from_what_a_schedule_costs_where_it_was_measured(
    run_of: RunFactory, manifest: ManifestFactory
) -> None:
    measured = {
        "ngram-k4": RATIOS,
        "ngram-schedule-k2": dict.fromkeys(RATIOS, 0.98),
        "ngram-schedule-k4": {level: 0.96 * ratio for level, ratio in RATIOS.items()},
    }
    rungs = {name: {"of": "ngram", "k": int(name[-1]), "constant_schedule": "schedule" in name} for name in measured}
    made = manifest(
        profiles=("baseline", *measured),
        methods={"baseline": "none"} | dict.fromkeys(measured, "ngram"),
        num_speculative_tokens=dict.fromkeys(measured, 4),
        settings=manifest().settings | {"ladder": rungs},
    )
    cells = [cell for name, ratios in measured.items() for cell in run_of(ratios, profile=name)]
    cells = list({(c.key.profile, c.key.level, c.key.repeat): c for c in cells}.values())
    plain = analyse(manifest(), run_of(RATIOS)).recommendation
    assert plain is not None
    advised = replace(analyse(made, cells), recommendation=replace(plain, value=((1, 8, 4), (9, 256, 2))))
    wish = Wish((Slo("tpot", 0.5, 0.02),), Demand(rate_per_s=50.0), Hardware())
    plan = make_plan(advised, made, load_points(made, cells, spans_of(cells)), {}, wish)
    known = {one.setting: one.detail for one in plan.offers}
    assert "schedule" in known
    assert known["ngram-schedule-k2"] == "K = 2"
    assert known["schedule"].endswith("put together from servers under constant schedules")


def test_profiles_for_attribution_are_no_choice(run_of: RunFactory, manifest: ManifestFactory) -> None:
    cells = [*run_of(RATIOS), *run_of(dict.fromkeys(RATIOS, 1.3), profile="baseline-sync")]
    methods = {"baseline": "none", "ngram": "ngram", "baseline-sync": "none"}
    made = manifest(profiles=("baseline", "ngram", "baseline-sync"), methods=methods)
    plan = plan_of(cells, made, Wish((Slo("tpot", 0.5, 0.02),), Demand(rate_per_s=50.0), Hardware()))
    assert "baseline-sync" not in {one.setting for one in plan.offers}


def test_void_cells_are_left_out(run_of: RunFactory, manifest: ManifestFactory) -> None:
    cells = [replace(c, outcomes={"ok": 1, "timeout": 9}) if c.key.level == 8 else c for c in run_of(RATIOS)]
    points = load_points(manifest(), cells, spans_of(cells))
    assert [p.level for p in points[CODE, "ngram"]] == [1, 2, 4, 16, 32]


def test_no_setting_within_objectives_is_said(run_of: RunFactory, manifest: ManifestFactory) -> None:
    plan = plan_of(run_of(RATIOS), manifest(), Wish((Slo("tpot", 0.5, 1e-6),), Demand(rate_per_s=1.0), Hardware()))
    assert plan.advice[0].setting is None
    assert "no setting meets the objectives" in plan.answer
    assert all(one.fleet is None for one in plan.offers)


def test_a_mix_shares_out_the_demand_and_counts_a_spare_per_pool(run_of: RunFactory, manifest: ManifestFactory) -> None:
    chat = run_of(dict.fromkeys(RATIOS, 0.7), condition=CHAT)
    both = manifest(conditions=(CODE, CHAT))
    demand = Demand(rate_per_s=100.0, shares=(("code-edit", 0.7), ("chat", 0.3)))
    plan = plan_of(
        [*run_of(dict.fromkeys(RATIOS, 1.4)), *chat], both, Wish((Slo("tpot", 0.5, 0.02),), demand, Hardware())
    )
    assert plan.mix is not None
    assert {pool.setting: pool.workloads for pool in plan.mix.pools} == {"baseline": ("chat",), "ngram": ("code-edit",)}
    assert sum(pool.share for pool in plan.mix.pools) == pytest.approx(1.0)
    assert plan.mix.gpus == sum(pool.fleet.gpus for pool in plan.mix.pools)
    assert all(pool.fleet.with_spares == pool.fleet.with_headroom + 1 for pool in plan.mix.pools)
    assert {pool.setting for pool in plan.mix.single} >= {"baseline", "ngram"}


def test_a_mix_of_unmeasured_workloads_is_refused(run_of: RunFactory, manifest: ManifestFactory) -> None:
    demand = Demand(rate_per_s=1.0, shares=(("code-edit", 0.5), ("poems", 0.5)))
    with pytest.raises(UsageError, match="poems, which was not measured"):
        plan_of(run_of(RATIOS), manifest(), Wish(SLOS, demand, Hardware()))


def test_a_level_that_fails_too_often_cannot_be_met() -> None:
    bad = point(4, 0.01)
    failed = RequestTimes(math.inf, math.inf, math.inf)
    bad = replace(bad, begun=(*bad.begun[:300], *([math.inf] * 100)), ended=(*bad.ended[:300], *([failed] * 100)))
    verdict = judge_level(bad, SLOS)
    assert verdict.verdict is Verdict.MISSED
    assert verdict.good_share == pytest.approx(0.75)
