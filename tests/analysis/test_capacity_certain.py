"""What a plan may say from few requests, from levels that end too early, and for several workloads at once."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from loadgen.analysis.capacity import make_plan
from loadgen.analysis.capacity_advice import advise, plan_mix
from loadgen.analysis.capacity_certain import is_resolved, is_sure, surely_none
from loadgen.analysis.capacity_fleet import fleet_of, with_range
from loadgen.analysis.capacity_model import Demand, Hardware, LoadPoint, Offer, Plan, RequestTimes, Slo
from loadgen.analysis.capacity_offer import Setting, Wish, offer
from loadgen.analysis.capacity_words import capacity_words, gpu_words
from loadgen.analysis.findings import analyse
from loadgen.commands.plan_run import code_of
from loadgen.errors import ExitCode
from loadgen.store.model import CellResult, Condition, Manifest

CODE, CHAT = Condition("code-edit", 512, 0.0), Condition("chat", 60, 0.0)
LEVELS = (1, 2, 4, 8, 16, 32)
P99 = Slo("tpot", 0.99, 0.02)
USERS = Demand(users=400, think_s=20.0)
RunFactory = Callable[..., list[CellResult]]
ManifestFactory = Callable[..., Manifest]


def points(count: int, factor: float = 1.0, levels: tuple[int, ...] = LEVELS) -> tuple[LoadPoint, ...]:
    """`count` equal requests a level; TPOT of 5 ms plus 1 ms per request in flight, times a factor."""
    made = []
    for level in levels:
        tpot_s = factor * (0.005 + 0.001 * level)
        e2e = 0.05 + 100 * tpot_s
        times = (RequestTimes(0.05, tpot_s, e2e),) * count
        made.append(LoadPoint(level, level / e2e, 101 * level / e2e, (0.05,) * count, times, None, "baseline"))
    return tuple(made)


def offered(count: int, slo: Slo = P99, demand: Demand | None = USERS, factor: float = 1.0) -> Offer:
    return offer(CODE, Setting("baseline", "", points(count, factor)), Wish((slo,), demand, Hardware()))


@pytest.fixture
def plan_of(run_of: RunFactory, manifest: ManifestFactory) -> Callable[..., Plan]:
    """The plan of baseline over made-up points: `plan_of({condition: points}, slo, demand)`."""

    def make(found: dict[Condition, tuple[LoadPoint, ...]], slo: Slo, demand: Demand | None) -> Plan:
        made = manifest(conditions=tuple(found))
        findings = analyse(made, run_of({1: 1.0}))
        points = {(condition, "baseline"): levels for condition, levels in found.items()}
        return make_plan(findings, made, points, {}, Wish((slo,), demand, Hardware()))

    return make


def test_levels_between_two_measured_ones_bring_no_requests_of_their_own() -> None:
    # 6 levels of 35 requests: 210 cannot bound p99 however many levels are interpolated between them
    found = offered(35)
    assert found.capacity is not None
    assert found.capacity.at is not None
    assert all(one.estimate.n <= 210 and one.estimate.high is None for one in found.capacity.at.quantiles)
    assert found.capacity.surely is None
    assert not is_sure(found)


def test_many_requests_give_an_interval_about_the_estimate() -> None:
    found = offered(2000)
    assert found.capacity is not None
    carried = found.capacity
    assert carried.per_server is not None
    assert carried.surely is not None
    assert carried.at_most is not None
    assert 0.8 * carried.per_server < carried.surely <= carried.per_server <= carried.at_most
    assert found.fleet is not None
    assert found.fleet.gpus_least is not None
    assert found.fleet.gpus_most is not None
    assert found.fleet.gpus_least <= found.fleet.gpus <= found.fleet.gpus_most
    assert is_sure(found)


@pytest.mark.parametrize("demand", [USERS, Demand(rate_per_s=20.0), None])
def test_an_unresolved_p99_stands_in_the_sentence_the_advice_and_the_exit_code(
    plan_of: Callable[..., Plan], demand: Demand | None
) -> None:
    plan = plan_of({CODE: points(37)}, P99, demand)
    assert plan.answer.removeprefix("SIMULATED: ").startswith("Unresolved on code-edit: baseline by its estimates")
    assert "About 10x the requests a level (--repeats, a longer --window) would resolve it." in plan.answer
    assert "tpot_p99 cannot be bounded by 37 requests a level: it takes 368" in plan.advice[0].doubt
    assert any(plan.advice[0].doubt in note for note in plan.notes)
    assert plan.advice[0].reason.startswith("by estimates only")
    assert not is_resolved(plan)
    assert code_of(plan) is ExitCode.NO_VERDICT
    resolved = plan_of({CODE: points(2000)}, P99, demand)
    assert "nresolved" not in resolved.answer
    assert code_of(resolved) is ExitCode.ANSWER


def test_that_no_setting_does_is_sure_only_by_the_interval(plan_of: Callable[..., Plan]) -> None:
    tight = replace(P99, limit_s=0.001)
    sure = plan_of({CODE: points(37)}, tight, USERS)
    # each of 37 requests misses: their smallest bounds p99 from below
    assert surely_none(sure.offers)
    assert code_of(sure) is ExitCode.FINDINGS
    slow = replace(points(37)[0].ended[0], tpot_s=0.03)
    mixed = tuple(replace(p, ended=(*p.ended[:36], slow)) for p in points(37))
    open_still = plan_of({CODE: mixed}, P99, USERS)
    assert open_still.advice[0].setting is None
    assert open_still.answer.removeprefix("SIMULATED: ").startswith("Unresolved on code-edit: no setting meets")
    assert code_of(open_still) is ExitCode.NO_VERDICT


def test_levels_that_end_too_early_make_the_gpus_an_upper_bound(plan_of: Callable[..., Plan]) -> None:
    lax = replace(P99, limit_s=1.0)
    plan = plan_of({CODE: points(2000)}, lax, replace(USERS, users=4000))
    assert "users or more" in plan.answer
    assert "GPUs or fewer" in plan.answer
    assert "Measured up to level 32: --levels 1,2,4,8,16,32,64 would tell whether fewer GPUs do" in plan.answer
    found = plan.offers[0]
    assert found.capacity is not None
    assert found.capacity.at_most is None
    assert found.fleet is not None
    # one working server and its spare
    assert found.fleet.gpus_least == 2


def test_no_fewer_than_one_server_and_its_spares_are_promised() -> None:
    few = offered(2000, replace(P99, limit_s=1.0), replace(USERS, users=10))
    assert few.fleet is not None
    assert few.fleet.gpus == 2
    assert "2 GPUs in all" in capacity_words(few)


def test_a_number_of_gpus_near_a_step_is_not_sharp() -> None:
    def words(per_server: float) -> str:
        bare = fleet_of(400, per_server, Hardware(), None)
        return gpu_words(with_range(bare, 400, (per_server, None, None), Hardware()), at_most=True)

    # 400 users with 20 % headroom are 480
    assert words(481) == "2 GPUs (3 at 5 % less per server)"
    assert words(478) == "3 GPUs or fewer"
    assert words(600) == "2 GPUs"


def test_several_workloads_are_alternatives_and_the_mix_is_named(plan_of: Callable[..., Plan]) -> None:
    both = {CODE: points(2000), CHAT: points(2000)}
    plan = plan_of(both, P99, USERS)
    assert "Each is for all 400 users on that workload alone: alternatives, not to be added" in plan.answer
    assert any("--mix chat=0.5,code-edit=0.5" in note for note in plan.notes)
    assert "alternatives" not in plan_of({CODE: points(2000)}, P99, USERS).answer
    assert "alternatives" not in plan_of(both, P99, None).answer


def test_a_mix_of_unresolved_workloads_is_unresolved(plan_of: Callable[..., Plan]) -> None:
    shares = replace(USERS, shares=(("code-edit", 0.7), ("chat", 0.3)))
    plan = plan_of({CODE: points(37), CHAT: points(2000)}, P99, shares)
    assert plan.answer.removeprefix("SIMULATED: ").startswith("Unresolved, by estimates only")
    assert code_of(plan) is ExitCode.NO_VERDICT
    assert code_of(plan_of({CODE: points(2000), CHAT: points(2000)}, P99, shares)) is ExitCode.ANSWER


def test_the_pool_that_a_mix_advises_decides_whether_it_is_sure() -> None:
    def made(condition: Condition, setting: str, count: int, factor: float) -> Offer:
        parts = Setting(setting, "", points(count, factor))
        return replace(offer(condition, parts, Wish((P99,), wish.demand, Hardware())), condition=condition)

    wish = Wish((P99,), replace(USERS, shares=(("code-edit", 0.5), ("chat", 0.5))), Hardware())
    # ngram is best on code-edit; the baseline for all saves a spare, but its p99 on code-edit is open
    code = [made(CODE, "baseline", 37, 1.0), made(CODE, "ngram", 2000, 0.8)]
    chat = [made(CHAT, "baseline", 2000, 1.0)]
    found = plan_mix([(CODE, 0.5, code), (CHAT, 0.5, chat)], wish, "baseline")
    assert found is not None
    assert "ne pool with baseline for all" in found.sentence
    assert not found.sure
    sure = plan_mix([(CODE, 0.5, [made(CODE, "baseline", 2000, 1.0), code[1]]), (CHAT, 0.5, chat)], wish, "baseline")
    assert sure is not None
    assert sure.sure


@pytest.mark.parametrize(("ratio", "says"), [(1.01, True), (1.0, True), (0.99, True), (0.5, False)])
def test_what_is_the_same_within_noise_is_not_said_to_cost(ratio: float, says: bool) -> None:
    plain = offered(2000)
    assert plain.capacity is not None
    assert plain.capacity.per_server is not None
    less = plain.capacity.per_server * ratio
    rival = replace(
        plain, setting="ngram-k2", capacity=replace(plain.capacity, per_server=less, surely=less, at_most=less)
    )
    reason = advise(CODE, (plain, rival), "baseline", {"ngram-k2": 2.0}).reason
    assert reason.startswith(f"ngram-k2 carries {ratio:.2f}x of it")
    assert ("the same within noise" in reason) is says
    assert ("costs more than it saves" in reason) is not says
