from dataclasses import replace
from typing import Any

import pytest

from loadgen.analysis.check_context import CellContext
from loadgen.analysis.check_run import run_checks
from loadgen.analysis.checks import check_cell, contexts_of, judge, level_checks, template_tokens
from loadgen.analysis.findings import analyse
from loadgen.analysis.pairs import Pair
from loadgen.load.summary import Distribution
from loadgen.metrics.model import HistogramDelta
from loadgen.store.model import CellResult, ServerFacts

NGRAM = CellContext(speculates=True, tokens_per_event=5.0)


def names(cell: CellResult, context: CellContext = NGRAM) -> dict[str, bool]:
    return {check.name: check.voids for check in check_cell(cell, context)}


def with_client(cell: CellResult, **changes: Any) -> CellResult:
    return replace(cell, client=replace(cell.client, **changes))


def with_window(cell: CellResult, **changes: Any) -> CellResult:
    assert cell.window is not None
    return replace(cell, window=replace(cell.window, **changes))


def with_idle(cell: CellResult, **changes: Any) -> CellResult:
    assert cell.idle is not None
    return replace(cell, idle=replace(cell.idle, **changes))


def with_gauges(cell: CellResult, **changes: Any) -> CellResult:
    return replace(cell, gauges=replace(cell.gauges, **changes))


def test_a_clean_cell_has_no_finding(cell: Any) -> None:
    assert names(cell()) == {}
    assert names(cell("baseline"), CellContext()) == {}


@pytest.mark.parametrize(
    ("lag_s", "cpu", "window_s", "expected"),
    [
        (0.009, 0.5, 2.5, {}),
        (0.026, 0.5, 10.0, {"client-bound": True}),
        (0.026, 0.5, 1.5, {"client-bound": False}),
        (0.012, 0.5, 10.0, {"client-bound": False}),
        (0.051, 0.5, 2.5, {"client-bound": True}),
        (0.001, 0.95, 2.5, {"client-bound": True}),
    ],
)
def test_c57_the_load_generator_is_the_bottleneck(
    cell: Any, lag_s: float, cpu: float, window_s: float, expected: dict[str, bool]
) -> None:
    short = replace(cell(), e2e_s=Distribution(40, 0.5, 0.5, 0.5, 0.5, 0.5), window_s=window_s)
    assert names(with_client(short, loop_lag_p99_s=lag_s, cpu_share=cpu)) == expected


@pytest.mark.parametrize(("lag_s", "expected"), [(0.072, {"client-bound": False}), (0.16, {"client-bound": True})])
def test_a_lag_of_up_to_5_percent_of_a_request_is_told_and_more_voids(
    cell: Any, lag_s: float, expected: dict[str, bool]
) -> None:
    # As beside a vLLM on the same two cores: gaps of 50 ms, requests of 3 s.
    slow = replace(
        cell(),
        chunk_gap_s=Distribution(40, 0.05, 0.05, 0.05, 0.05, 0.05),
        e2e_s=Distribution(20, 3.0, 3.0, 3.0, 3.0, 3.0),
        window_s=10.0,
    )
    assert names(with_client(slow, loop_lag_p99_s=lag_s)) == expected


def test_a_slow_server_allows_more_lag(cell: Any) -> None:
    slow = replace(cell(), chunk_gap_s=Distribution(40, 0.2, 0.2, 0.2, 0.2, 0.2), window_s=10.0)
    assert names(with_client(slow, loop_lag_p99_s=0.015)) == {}


def test_c45_c47_fewer_requests_in_flight_than_the_level_says(cell: Any) -> None:
    assert names(with_client(cell(level=32), in_flight_mean=10.0)) == {"reached-concurrency": True}


def test_c44_less_than_95_per_cent_success(cell: Any) -> None:
    assert names(replace(cell(), outcomes={"ok": 94, "overload": 6}))["success"]
    assert "success" not in names(replace(cell(), outcomes={"ok": 95, "overload": 5}))
    assert "success" not in names(replace(cell(), outcomes={"ok": 95, "cancelled": 50}))
    assert names(replace(cell(), outcomes={}))["success"]


def test_c08_coalesced_events_only_warn(cell: Any) -> None:
    assert names(with_client(cell(), zero_gap_share=0.5)) == {"coalesced-chunks": False}


def test_c12_estimated_tokens_void_a_speculating_pair(cell: Any) -> None:
    assert names(replace(cell(), token_sources={"chunks": 40}))["tokens-estimated"]


def test_c52_prefix_cache_hits_void_the_level(cell: Any) -> None:
    assert names(with_window(cell(), prefix_cache_queries=16384.0, prefix_cache_hits=15872.0)) == {"prefix-cache": True}


def test_c52_the_chat_template_is_no_leak(cell: Any) -> None:
    clean = with_window(cell(), prefix_cache_queries=5120.0, prefix_cache_hits=320.0)
    leak = with_window(cell(), prefix_cache_queries=5120.0, prefix_cache_hits=640.0)
    context = replace(NGRAM, template_tokens=template_tokens([clean, leak]))
    assert context.template_tokens == 32.0
    assert names(clean, context) == {}
    assert names(leak, context) == {"prefix-cache": True}


def test_c73_c74_a_restart_voids(cell: Any) -> None:
    assert names(with_idle(cell(), reset_detected=True)) == {"reset-counters": True}


def test_c85_other_traffic_voids_and_missing_tokens_warn(cell: Any) -> None:
    assert names(with_idle(cell(), generation_tokens=5200.0)) == {"other-traffic": True}
    assert names(with_idle(cell(), generation_tokens=2560.0)) == {"token-mismatch": False}
    assert names(with_idle(cell(), generation_tokens=5150.0)) == {}


def test_c84_cancelled_requests_explain_a_difference(cell: Any) -> None:
    cancelled = replace(with_idle(cell(), generation_tokens=5500.0), outcomes={"ok": 40, "cancelled": 5})
    assert names(cancelled) == {}


def test_h200_c256_the_saturated_api_server_is_void(cell: Any) -> None:
    bad = cell(level=256, tokens_per_s=8320.0)
    steps = HistogramDelta(8320.0 * 2.5 / 2 / 163, 8320.0 * 2.5)
    bad = with_window(bad, process_cpu_s=1.03 * 2.5, iteration_tokens=steps)
    bad = with_gauges(bad, running_mean=163.0, scrape_p50_s=0.262)
    assert names(bad) == {"queueing": True, "api-server-bound": True}


def test_rates_apart_between_engine_and_client(cell: Any) -> None:
    bad = cell(level=8, tokens_per_s=1000.0)
    assert names(with_window(bad, generation_tokens=1670.0 * 2.5)) == {"rates-apart": True}


def test_one_look_between_two_requests_is_no_queue(cell: Any) -> None:
    def uncounted(level: int, **changes: Any) -> CellResult:
        return with_gauges(with_window(cell(level=level), iteration_tokens=None), **changes)

    assert names(uncounted(1, running_mean=0.8)) == {}
    assert names(uncounted(1, running_mean=0.4)) == {"batch-below-level": False}
    assert names(uncounted(32, waiting_mean=5.0)) == {"queueing": True}


def test_short_outputs_on_their_way_are_no_queue_but_a_busy_api_server_is(cell: Any) -> None:
    steps = HistogramDelta(8320.0 * 2.5 / 13.2, 8320.0 * 2.5)
    short = with_gauges(with_window(cell(level=16), iteration_tokens=steps), running_mean=13.2)
    assert names(with_window(short, process_cpu_s=0.2 * 2.5)) == {"batch-below-level": False}
    assert names(with_window(short, process_cpu_s=0.7 * 2.5)) == {"queueing": True}
    assert names(with_gauges(with_window(short, process_cpu_s=0.2 * 2.5), waiting_mean=2.8)) == {"queueing": True}


def test_a_full_batch_in_every_step_outweighs_two_looks_at_the_gauges(cell: Any) -> None:
    assert names(with_gauges(cell(level=4), running_mean=3.0, n=2)) == {}


def test_c70_c71_absent_metrics_are_not_zeros(cell: Any) -> None:
    assert names(replace(cell(), window=None, idle=None)) == {"no-server-metrics": False}


def test_c76_no_drafts_is_named_and_voids_nothing(cell: Any, manifest: Any, run_of: Any) -> None:
    quiet = {"drafts": 0.0, "draft_tokens": 0.0, "accepted_tokens": 0.0, "accepted_per_position": ()}
    cells = [with_window(one, **quiet) if one.key.profile == "ngram" else one for one in run_of({8: 1.1})]
    level = analyse(manifest(), cells).conditions[0].profiles[0].levels[0]
    assert [check.name for check in level.checks] == ["no-drafts"]
    assert (level.acceptance_rate, level.mean_acceptance_length) == (None, None)
    assert level.speedup is not None


def test_exactly_zero_acceptance_points_to_the_server(cell: Any) -> None:
    none = with_window(cell(), accepted_tokens=0.0, accepted_per_position=(0.0,) * 4)
    assert names(none) == {"zero-acceptance": False}
    assert names(none, replace(NGRAM, cost_probe=True)) == {}
    assert names(with_window(none, drafts=99.0)) == {}


def test_a_baseline_that_drafts_is_another_server(cell: Any) -> None:
    assert names(cell(), CellContext(speculates=False)) == {"baseline-drafts": True}


def test_outcomes_only_warn(cell: Any) -> None:
    assert names(replace(cell(), repeated_ngram_share=0.9)) == {"degenerate-output": False}
    assert names(replace(cell(), half_second_tokens=(500.0, 500.0, 500.0, 200.0, 200.0))) == {"slow-phase": False}
    assert names(replace(cell(), half_second_tokens=(200.0, 200.0, 500.0, 500.0, 500.0))) == {"cold-start": False}
    assert names(replace(cell(), half_second_tokens=(500.0, 200.0, 500.0, 500.0, 500.0))) == {}
    assert names(replace(cell(), steal_share=0.2)) == {"stolen-cpu": False}
    assert names(with_client(cell(), lockstep=0.9)) == {"lockstep": False}
    assert names(with_window(cell(), preemptions=3.0)) == {"preemption": False}


def test_a_slow_phase_at_the_very_end_of_the_window_is_seen(cell: Any) -> None:
    assert "slow-phase" in names(replace(cell(), half_second_tokens=(500.0,) * 4 + (100.0,) * 2))


def test_c31_length_drift_warns(cell: Any, manifest: Any) -> None:
    base = replace(cell("baseline"), output_tokens=Distribution(40, 256.0))
    own = replace(cell(), output_tokens=Distribution(40, 190.0))
    contexts = contexts_of(manifest(), [base, own])
    judged = judge(Pair(base, own), contexts)
    assert [check.name for check in judged.profile_checks] == ["length-drift"]
    assert judged.valid


def test_few_requests_of_varying_length_are_no_drift(cell: Any, manifest: Any) -> None:
    base = replace(cell("baseline"), output_tokens=Distribution(9, 84.0, 80.0, 140.0, 180.0, 180.0))
    own = replace(cell(), output_tokens=Distribution(9, 102.0, 100.0, 150.0, 180.0, 180.0))
    assert judge(Pair(base, own), contexts_of(manifest(), [base, own])).profile_checks == ()


def test_c53_different_prompts_void_the_pair(cell: Any, manifest: Any) -> None:
    base, own = cell("baseline"), replace(cell(), prompts_sha256="other")
    assert not judge(Pair(base, own), contexts_of(manifest(), [base, own])).valid


def test_a_void_cell_takes_its_pair_along_and_counts_stand_by_profile(run_of: Any, manifest: Any) -> None:
    cells = [
        with_client(one, cpu_share=1.0) if one.key.profile == "baseline" and one.key.repeat == 0 else one
        for one in run_of({1: 1.5, 8: 0.8}, noise=(0.99, 1.0, 1.01, 1.0))
    ]
    level = analyse(manifest(), cells).conditions[0].profiles[0].levels[0]
    assert (level.n, level.voided_cells, level.voided_baseline_cells) == (3, 0, 1)
    assert level.checks[0].cause.startswith("baseline, 1 of 4 cells: ")


def test_checks_of_a_level_are_merged_by_name(cell: Any, manifest: Any) -> None:
    pairs = [Pair(cell("baseline", repeat=r), with_client(cell(repeat=r), cpu_share=0.95)) for r in range(3)]
    contexts = contexts_of(manifest(), [])
    (check,) = level_checks([judge(pair, contexts) for pair in pairs])
    assert check.cause.startswith("ngram, 3 of 3 cells: ")


def test_servers_that_differ_in_more_than_speculation_are_named(run_of: Any, manifest: Any) -> None:
    servers = [
        ServerFacts("baseline", 0, "u", "m", "0.32.0", 1.0, (), {"async_scheduling": True}),
        ServerFacts("ngram", 0, "u", "m", "0.32.0", 1.0, (), {"async_scheduling": False}),
    ]
    (check,) = analyse(manifest(), run_of({8: 1.1}), servers).checks
    assert check.cause == "async scheduling is off for ngram, vLLM does that"
    assert "baseline-sync" in check.cure


def test_cures_fit_the_run(cell: Any) -> None:
    bundled, together = with_client(cell(), zero_gap_share=0.5), with_client(cell(), lockstep=0.9)

    def cure(one: CellResult, **facts: bool) -> str:
        (check,) = check_cell(one, CellContext(speculates=True, **facts))
        return check.cure

    assert "proxy" in cure(bundled)
    assert "proxy" not in cure(bundled, direct=True)
    assert "--ignore-eos" in cure(together)
    assert "end by themselves" not in cure(together, natural_ends=True)


def test_the_context_knows_the_way_and_the_ends(manifest: Any) -> None:
    own = replace(manifest(), engine="process", sampling={"ignore_eos": False})
    assert {(one.direct, one.natural_ends) for one in contexts_of(own, []).values()} == {(True, True)}
    far = replace(manifest(), engine="url", sampling={"ignore_eos": True})
    assert {(one.direct, one.natural_ends) for one in contexts_of(far, []).values()} == {(False, False)}


def test_what_vllm_does_by_itself_is_one_line_and_only_for_its_methods(run_of: Any, manifest: Any) -> None:
    off = {"async_scheduling": False, "model_runner": "v1"}
    servers = [
        ServerFacts("baseline", 0, "u", "m", "0.32.0", 1.0, (), {"async_scheduling": True, "model_runner": "v2"}),
        ServerFacts("ngram", 0, "u", "m", "0.32.0", 1.0, (), off),
    ]
    (check,) = analyse(manifest(), run_of({8: 1.1}), servers).checks
    assert check.cause == "async scheduling is off and model runner V1 is used for ngram, vLLM does that"
    own = replace(manifest(), methods={"ngram": "draft_model"})
    causes = [check.cause for check in run_checks(own, servers)]
    assert "async_scheduling is False for ngram and True for baseline" in causes
