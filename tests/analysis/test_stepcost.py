from typing import Any

import pytest

from loadgen.analysis.checks import contexts_of, judge
from loadgen.analysis.pairs import pair_cells
from loadgen.analysis.step_points import graph_limits, level_steps
from loadgen.analysis.stepcost import StepCost, StepPoint, Steps, capture_sizes, padded
from loadgen.analysis.steps import StepGroup
from loadgen.store.model import ServerFacts

COST = StepCost(1e-3, 4e-3, 4e-5, 1.0, 2e-5, 4e-4, 1e-5, 2e-2)


def test_tokens_are_padded_to_vllms_graph_sizes() -> None:
    assert capture_sizes(32) == (1, 2, 4, 8, 16, 24, 32)
    assert capture_sizes(512)[-3:] == (480, 496, 512)
    assert [padded(n, 512) for n in (1, 3, 8, 9, 257, 512, 513)] == [1, 4, 8, 16, 272, 512, 513]
    # Halfway between 8, which is captured, and 9, which runs as 16.
    assert padded(8.5, 512) == 12
    assert padded(7.25, 0) == 7.25


def test_a_step_is_the_sum_of_its_parts() -> None:
    decoding = StepPoint(2, 3.0, 1.0, True)
    own, plain = Steps([decoding, StepPoint(2, 3.0, 1.0, False)]).mean_s(COST)
    assert own - plain == pytest.approx(4e-4 + 2 * 1e-5)
    # 8 tokens take 0.32 ms to compute, far below the 4 ms of the weights.
    assert plain == pytest.approx(1e-3 + 4e-3 + 2 * 2e-5, rel=1e-4)


def test_kinds_of_steps_count_by_their_shares_and_a_large_one_has_no_graph() -> None:
    kinds = (StepGroup(0.75, 0.0, 0.0), StepGroup(0.25, 1.0, 510.0))
    mixed = float(Steps([StepPoint(8, 0.0, 1.0, False, kinds)]).mean_s(COST)[0])
    only = float(Steps([StepPoint(8, 0.0, 1.0, False)]).mean_s(COST)[0])
    # 518 tokens: 20.7 ms of computing, more than the 20 ms to launch without a graph.
    assert mixed == pytest.approx(0.75 * only + 0.25 * (1e-3 + 518 * 4e-5 + 9 * 2e-5), rel=2e-3)
    within = StepPoint(8, 0.0, 1.0, False, kinds, limit=1024)
    assert float(Steps([within]).mean_s(COST)[0]) == pytest.approx(mixed, rel=0.02)


def test_the_knee() -> None:
    assert COST.knee == pytest.approx(100)


def test_points_come_from_the_windows_of_valid_pairs(run_of: Any, manifest: Any) -> None:
    cells = run_of({8: 1.2, 16: 1.0})
    contexts = contexts_of(manifest(), cells)
    (pairing,) = pair_cells(cells, "baseline")
    levels = level_steps([judge(pair, contexts) for pair in pairing.pairs], own_limit=64)
    assert [one.level for one in levels] == [8, 16]
    assert [one.own.batch for one in levels] == pytest.approx([8.0, 16.0])
    # 4 draft tokens in 80 % of the steps.
    assert levels[0].own.verified == pytest.approx(8 * 4.2)
    assert (levels[0].plain.drafted, levels[0].plain.speculates) == (0.0, False)
    assert (levels[0].plain.limit, levels[0].own.limit) == (512, 64)


def test_limits_are_what_the_servers_told() -> None:
    def facts(profile: str, **effective: Any) -> ServerFacts:
        return ServerFacts(profile, 0, "http://127.0.0.1:1", "m", "0.32.0", 1.0, ("vllm",), effective=effective)

    servers = [
        facts("baseline", max_graph_size=512, graph_mode="FULL"),
        facts("eager", graph_mode="NONE"),
        facts("unknown"),
    ]
    assert graph_limits(servers) == {"baseline": 512, "eager": 0}
