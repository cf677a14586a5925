import json
import math
import shlex
from collections.abc import Mapping
from typing import Any

import pytest

from loadgen.analysis.batchmap import batch_at
from loadgen.analysis.capability import ability
from loadgen.analysis.findings import analyse
from loadgen.analysis.schedule import Choice, Schedule, make_schedule, rungs
from loadgen.analysis.schedule_advice import recommend_schedule
from loadgen.analysis.schedule_answer import ranges_words
from loadgen.analysis.schedule_edges import Rung
from loadgen.analysis.schedule_text import as_option, as_yaml, speculative_config
from loadgen.profiles.loader import parse_profile
from loadgen.profiles.schedule import parse_schedule, schedule_lookup

LEVELS = (1, 2, 4, 8, 16, 32, 64, 128)
# reference/h200.md, the 8B-shaped model.
H200_K3 = dict(zip(LEVELS, (1.63, 1.52, 1.51, 1.47, 1.35, 1.35, 1.10, 0.63), strict=True))
H200_K1 = dict(zip(LEVELS, (1.18, 1.18, 1.11, 1.18, 1.09, 1.08, 0.97, 0.86), strict=True))
H200_DYNAMIC = dict(zip(LEVELS, (0.93, 1.03, 0.63, 1.15, 0.91, 1.08, 0.77, 0.79), strict=True))


def curve(speedups: Mapping[int, float], error: float | None = 0.005, share: float = 1.0) -> list[Rung]:
    return [Rung(level, math.log(ratio), error, level * share) for level, ratio in speedups.items()]


def made(ladder: Mapping[int, Mapping[int, float]], **options: Any) -> Schedule:
    found = make_schedule({k: curve(speedups) for k, speedups in ladder.items()}, max_num_seqs=256, **options)
    assert found is not None
    return found


def test_the_best_k_per_batch_merged_in_vllms_form() -> None:
    found = made({4: {1: 2.0, 8: 1.5, 32: 0.9}, 2: {1: 1.6, 8: 1.45, 32: 1.2}})
    # ln(1.5/1.45) against ln(0.9/1.2): 10.5 % of the way from 8 to 32 in log2, so 9.26.
    assert found.ranges == ((1, 9, 4), (10, 256, 2))
    assert found.choice is Choice.SCHEDULE
    assert parse_schedule(found.ranges) == found.ranges
    lookup = schedule_lookup(found.ranges, max_k=4, max_num_seqs=256)
    assert (lookup[9], lookup[10], lookup[256]) == (4, 2, 2)


def test_speculation_goes_off_where_nothing_gains() -> None:
    found = made({3: H200_K3, 1: H200_K1})
    assert found.ranges == ((1, 72, 3), (73, 256, 0))
    assert found.static_k == 3
    assert not found.zero_measured


def test_edges_are_requests_per_step_not_requests_in_flight() -> None:
    ladder = {4: curve({1: 2.0, 8: 1.5, 32: 0.5}, share=0.75)}
    found = make_schedule(ladder, max_num_seqs=256)
    assert found is not None
    # 1.5 to 0.5 passes 1 at 13.35 in flight; 13 of them are 9.75 per step, so that most steps have 10.
    assert found.ranges == ((1, 10, 4), (11, 256, 0))


def test_a_tie_goes_to_the_smaller_k() -> None:
    found = made({4: {1: 1.51, 32: 1.31}, 2: {1: 1.50, 32: 1.30}})
    assert (found.ranges, found.choice, found.static_k) == (((1, 256, 2),), Choice.STATIC, 4)


def test_wide_noise_makes_more_ties() -> None:
    speedups = {1: 1.15, 32: 1.10}
    sure = make_schedule({4: curve(speedups, 0.01)}, max_num_seqs=64)
    unsure = make_schedule({4: curve(speedups, 0.10)}, max_num_seqs=64)
    assert sure is not None
    assert unsure is not None
    assert (sure.ranges, unsure.ranges) == (((1, 64, 4),), ((1, 64, 0),))


def test_nothing_gains_is_no_speculation() -> None:
    found = made({2: {1: 0.99, 32: 0.7}})
    assert (found.ranges, found.choice) == (((1, 256, 0),), Choice.NONE)


def test_h200_dynamic_mode_loses_to_two_pools() -> None:
    constant = {3: curve(H200_DYNAMIC), 0: curve(dict.fromkeys(LEVELS, 0.8))}
    found = make_schedule(constant, max_num_seqs=256, static={3: curve(H200_K3), 1: curve(H200_K1)})
    assert found is not None
    assert (found.choice, found.static_k, found.zero_measured) == (Choice.TWO_POOLS, 3, True)
    assert found.pools_in_flight == ((1, 72, 3), (73, 256, 0))
    advice = recommend_schedule(found, method="draft_model", version="0.26.0", data_parallel=1, holds_for="h200")
    assert advice.setting == "two_pools"
    assert advice.value == {"num_speculative_tokens": 3, "edges": [[1, 72, 3], [73, 256, 0]]}
    assert "disable_by_batch_size would have been 73" in advice.why
    assert "One server with a schedule loses to that" in advice.why


def test_levels_that_one_k_lacks_are_left_out() -> None:
    assert make_schedule({4: curve({1: 2.0}), 2: curve({8: 1.1})}, max_num_seqs=8) is None


@pytest.mark.parametrize(
    ("version", "setting"), [("0.32.0", "num_speculative_tokens_per_batch_size"), ("0.20.0", "two_pools")]
)
def test_the_advice_fits_the_version(version: str, setting: str) -> None:
    found = made({3: H200_K3})
    advice = recommend_schedule(found, method="eagle3", version=version, data_parallel=None, holds_for="x")
    assert advice.setting == setting
    assert "disable_by_batch_size would have been 73" in advice.why


def test_rungs_take_the_standard_error_back_from_the_interval(run_of: Any, manifest: Any) -> None:
    levels = analyse(manifest(), run_of({8: 1.2})).conditions[0].profiles[0].levels
    (rung,) = rungs(levels)
    logs = [math.log(0.99), 0.0, math.log(1.01)]
    mean = sum(logs) / 3
    expected = math.sqrt(sum((x - mean) ** 2 for x in logs) / 2 / 3)
    assert rung.standard_error == pytest.approx(expected)
    assert rung.batch == pytest.approx(8.0)


def test_the_batch_map_interpolates_and_extends() -> None:
    points = [(1, 1.0), (8, 6.0), (32, 20.0), (16, None)]
    assert batch_at(points, 8) == 6.0
    assert batch_at(points, 16) == pytest.approx(math.sqrt(120.0))
    assert batch_at(points, 64) == 40.0
    assert batch_at([], 12) == 12


def test_an_edge_keeps_away_from_the_loads_that_were_measured() -> None:
    # The curves cross at 8.6, and at 9 they are still within 2 %.
    found = made({4: {1: 1.6, 8: 1.0201, 16: 0.85}})
    assert found.in_flight == ((1, 9, 4), (10, 256, 0))
    # Here the next level is so much worse that every step away costs more than a tie.
    steep = made({4: {1: 1.6, 8: 1.0201, 16: 0.5}})
    assert steep.in_flight[0][1] == 8


def test_a_static_k_that_costs_somewhere_is_two_pools_where_no_schedule_can_be_obeyed() -> None:
    found = made({4: {1: 1.5, 8: 1.2, 32: 0.7}, 2: {1: 1.3, 8: 1.25, 32: 0.9}})
    advice = recommend_schedule(found, method="suffix", version="0.32.0", data_parallel=None, holds_for="x")
    assert advice.setting == "two_pools"
    assert advice.value == {"num_speculative_tokens": found.static_k, "edges": [list(e) for e in found.pools_in_flight]}
    assert "a schedule with suffix ends the engine" in advice.why


def test_v0_gets_its_own_switch_as_a_number() -> None:
    found = made({4: {1: 1.5, 8: 1.2, 32: 0.7}})
    advice = recommend_schedule(found, method="eagle", version="0.7.3", data_parallel=None, holds_for="x")
    off = next(first for first, _, k in found.pools if k == 0)
    assert (advice.setting, advice.value) == ("disable_by_batch_size", off)


def test_a_drop_at_the_graph_limit_is_to_be_looked_at_first() -> None:
    found = made({3: {1: 1.6, 64: 1.1, 128: 0.63}})
    options: dict[str, Any] = {"method": "eagle3", "version": "0.32.0", "data_parallel": None, "holds_for": "x"}
    told = recommend_schedule(found, **options, max_graph_size=512).why
    assert "Between 64 and 128 the batch times 4 passes the CUDA graph capture limit of 512 tokens" in told
    assert "max_cudagraph_capture_size above 512" in told
    assert "capture limit" not in recommend_schedule(found, **options, max_graph_size=2048).why


def test_expected_gains_have_intervals() -> None:
    found = made({4: {1: 2.0, 32: 0.9}, 2: {1: 1.6, 32: 1.2}})
    high = found.levels[-1]
    assert (high.k, found.static_k) == (2, 4)
    assert high.speedup_ci95 is not None
    assert high.over_static_ci95 is not None
    # t(2) = 4.303, standard error 0.005; of the ratio 0.005 · √2
    assert high.speedup_ci95[1] == pytest.approx(1.2 * math.exp(4.303 * 0.005), rel=1e-4)
    assert high.over_static_ci95[0] == pytest.approx(1.2 / 0.9 * math.exp(-4.303 * 0.005 * math.sqrt(2)), rel=1e-4)


@pytest.mark.parametrize(
    ("ladder", "choice"),
    [
        ({4: {1: 1.3, 32: 1.1}}, Choice.STATIC),
        ({4: {1: 1.3, 32: 0.8}}, Choice.SCHEDULE),
        ({4: {1: 0.9, 32: 0.8}}, Choice.NONE),
    ],
)
def test_the_choice_from_static_servers(ladder: Mapping[int, Mapping[int, float]], choice: Choice) -> None:
    assert made(ladder).choice is choice


def test_a_schedule_that_costs_more_than_it_saves_is_not_advised() -> None:
    static = {4: curve({1: 1.5, 8: 1.2, 32: 0.8})}
    cheap = make_schedule(
        {4: curve({1: 1.49, 8: 1.19, 32: 0.8}), 0: curve({1: 0.99, 8: 0.99, 32: 0.99})}, max_num_seqs=64, static=static
    )
    dear = make_schedule(
        {4: curve({1: 1.3, 8: 1.1, 32: 0.7}), 0: curve({1: 0.9, 8: 0.9, 32: 0.9})}, max_num_seqs=64, static=static
    )
    assert cheap is not None
    assert dear is not None
    assert (cheap.choice, dear.choice) == (Choice.SCHEDULE, Choice.TWO_POOLS)
    assert cheap.zero_measured


def test_the_schedule_in_vllms_syntax_reads_back() -> None:
    raw = {"method": "ngram", "num_speculative_tokens": 2, "prompt_lookup_min": 2, "prompt_lookup_max": 5}
    ranges = ((1, 8, 4), (9, 256, 0))
    config = speculative_config(raw, ranges, 4)
    profile = parse_profile(as_yaml(config), name="x", label="x")
    assert profile.speculative is not None
    assert profile.speculative.schedule == ranges
    assert profile.speculative.num_speculative_tokens == 4
    option, value = shlex.split(as_option(config))
    assert option == "--speculative-config"
    assert json.loads(value) == config
    assert "num_speculative_tokens_per_batch_size: [[1, 8, 4], [9, 256, 0]]" in as_yaml(config)
    assert "num_speculative_tokens_per_batch_size" not in speculative_config(config, None, 4)


def test_ranges_in_words() -> None:
    words = ranges_words(((1, 6, 4), (7, 12, 2), (13, 256, 0)))
    assert words == "K = 4 up to 6 concurrent requests, K = 2 from 7 to 12, no speculation from 13 on"
    assert ranges_words(((1, 256, 4),)) == "K = 4 at every tested load"


def test_a_draft_model_heeds_a_schedule_up_to_0_26_and_then_not_before_0_32() -> None:
    # 0.26 logs: V2 "does not yet support speculative method 'draft_model'; using the V1 model runner instead".
    settings = {v: ability("draft_model", v).setting for v in ("0.24.0", "0.26.0", "0.27.0", "0.31.0", "0.32.0")}

    schedule = "num_speculative_tokens_per_batch_size"
    assert settings == {
        "0.24.0": schedule,
        "0.26.0": schedule,
        "0.27.0": "two_pools",
        "0.31.0": "two_pools",
        "0.32.0": schedule,
    }
    assert "runs on model runner V1, which then forces PIECEWISE CUDA graphs" in ability("draft_model", "0.26.0").reason


LOST = {1: {1: 1.5} | dict.fromkeys((2, 4, 8, 16, 32), 0.88), 4: {1: 1.6, 2: 0.8, 4: 0.75, 8: 0.7, 16: 0.65, 32: 0.6}}


@pytest.mark.parametrize("version", ["0.32.0", "0.23.0"])
def test_a_range_below_one_request_per_step_is_left_to_a_router(version: str) -> None:
    # 1 in flight is 0.4 requests per step there, and 2 are 0.8: a schedule cannot tell them apart.
    found = make_schedule({k: curve(speedups, share=0.4) for k, speedups in LOST.items()}, max_num_seqs=256)
    assert found is not None
    advice = recommend_schedule(found, method="ngram", version=version, data_parallel=None, holds_for="x")
    assert advice.setting == "two_pools"
    assert advice.value == {"num_speculative_tokens": 4, "edges": [[1, 1, 4], [2, 256, 0]]}
    assert "would have been 2" in advice.why
    assert "every load" not in advice.why


def test_the_last_range_reaches_the_highest_load() -> None:
    found = made({1: {1: 1.5, 256: 1.2, 512: 0.7}, 4: {1: 1.6, 256: 1.1, 512: 0.5}})
    assert found.in_flight[-1][1] == 512
    assert found.ranges[-1][:2] == (found.ranges[-2][1] + 1, 512)


def test_v1_never_read_the_old_switch() -> None:
    v1 = ability("eagle", "0.9.2")
    assert v1.setting == "two_pools"
    assert "never read disable_by_batch_size (only V0 does: VLLM_USE_V1=0)" in v1.reason
    for method in ("suffix", "ngram_gpu"):
        for version in ("0.9.2", "0.7.3"):
            absent = ability(method, version)
            assert absent.setting == "two_pools"
            assert f"knows neither {method} nor a schedule" in absent.reason
