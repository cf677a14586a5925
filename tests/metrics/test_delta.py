"""What counters did between two snapshots."""

from collections.abc import Callable

import pytest

from loadgen.metrics.delta import delta, increase
from loadgen.metrics.parse import Snapshot, parse

Make = Callable[..., Snapshot]
SPEC = "vllm:spec_decode_num"


def spec_rows(engine: int, drafts: float, draft_tokens: float, accepted: float) -> list[str]:
    label = f'{{engine="{engine}",model_name="m"}}'
    return [
        f"{SPEC}_drafts_total{label} {drafts}",
        f"{SPEC}_draft_tokens_total{label} {draft_tokens}",
        f"{SPEC}_accepted_tokens_total{label} {accepted}",
    ]


def test_vllm_0_26_ngram_by_hand(capture: Callable[[str], Snapshot]) -> None:
    folder = "vllm-0.26.0-h200/ngram-metrics-c8"
    d = delta(capture(f"{folder}-before.txt"), capture(f"{folder}-after.txt"), 4.0)
    assert (d.drafts, d.draft_tokens, d.accepted_tokens) == (12669 - 10572, 50463 - 42086, 30767 - 25403)
    assert d.accepted_per_position == (9436 - 7770, 7861 - 6470, 7053 - 5843, 6417 - 5320)
    assert d.generation_tokens == 59895 - 50772
    assert d.prompt_tokens == 124461 - 112115
    assert (d.prefix_cache_queries, d.prefix_cache_hits) == (12346, 1728)
    assert d.requests_finished == {"stop": 0, "length": 35, "abort": 0, "error": 0, "repetition": 0}
    assert d.time_to_first_token is not None
    assert d.time_to_first_token.count == 35
    assert d.time_to_first_token.mean == pytest.approx((27.990833520889282 - 27.236120462417603) / 35)
    assert d.acceptance_rate == pytest.approx(5364 / 8377)
    assert d.mean_acceptance_length == pytest.approx(1 + 5364 / 2097)
    assert d.tokens_per_step == pytest.approx((9123 - 35) / (29224 - 25442))
    assert d.decode_batch == pytest.approx(3782 / (5906 - 5422))
    assert d.draft_coverage == pytest.approx(2097 / 3782)
    assert d.process_cpu_s == pytest.approx(0.95)
    assert d.inter_token_latency is not None
    assert d.inter_token_latency.buckets[-1][1] == 3782
    assert not d.reset_detected
    assert d.warnings == ()


def test_vllm_0_32_ngram_by_hand(capture: Callable[[str], Snapshot]) -> None:
    folder = "vllm-0.32.0-cpu-ngram/metrics"
    d = delta(capture(f"{folder}-before.txt"), capture(f"{folder}-after.txt"), 10.0)
    assert (d.drafts, d.draft_tokens, d.accepted_tokens) == (20, 78, 56)
    assert d.accepted_per_position == (15, 15, 15, 11)
    assert sum(d.acceptance_per_position) == pytest.approx(56 / 20)
    assert d.process_cpu_s == pytest.approx(0.16)
    assert not d.reset_detected


def test_baseline_has_no_speculation_not_zero(capture: Callable[[str], Snapshot]) -> None:
    folder = "vllm-0.26.0-h200/baseline-metrics-c8"
    d = delta(capture(f"{folder}-before.txt"), capture(f"{folder}-after.txt"), 4.0)
    assert (d.drafts, d.draft_tokens, d.accepted_tokens, d.accepted_per_position) == (None, None, None, ())
    assert d.acceptance_rate is None
    assert d.tokens_per_step == 1.0
    assert d.generation_tokens == 12891


def test_c61_engines_are_summed_before_the_ratio(snapshot: Make) -> None:
    before = snapshot(*spec_rows(0, 0, 0, 0), *spec_rows(1, 0, 0, 0))
    after = snapshot(*spec_rows(0, 400, 1200, 600), *spec_rows(1, 100, 300, 90))
    d = delta(before, after, 1.0)
    assert d.acceptance_rate == pytest.approx(0.46)
    assert d.mean_acceptance_length == pytest.approx(2.38)


def test_c62_figures_come_from_the_window_alone(snapshot: Make) -> None:
    before = snapshot(*spec_rows(0, 1000, 3000, 3000))
    after = snapshot(*spec_rows(0, 1100, 3300, 3120))
    assert delta(before, after, 1.0).acceptance_rate == pytest.approx(0.4)


def test_c64_created_rows_are_never_added(snapshot: Make) -> None:
    created = f'{SPEC}_drafts_created{{engine="0",model_name="m"}} 1.7951e+09'
    before = snapshot(*spec_rows(0, 0, 0, 0), created)
    after = snapshot(*spec_rows(0, 5, 15, 6), created)
    assert delta(before, after, 1.0).drafts == 5


def test_c68_a_histogram_named_total(snapshot: Make) -> None:
    name = "vllm:iteration_tokens_total"
    before = snapshot(
        f'{name}_bucket{{le="8.0"}} 0', f'{name}_bucket{{le="+Inf"}} 0', f"{name}_count 0", f"{name}_sum 0"
    )
    after = snapshot(
        f'{name}_bucket{{le="8.0"}} 9', f'{name}_bucket{{le="+Inf"}} 10', f"{name}_count 10", f"{name}_sum 61"
    )
    d = delta(before, after, 2.0)
    assert d.iteration_tokens is not None
    assert d.iteration_tokens.mean == pytest.approx(6.1)
    assert d.steps_per_s == 5.0


def test_c69_a_counter_that_is_not_a_number_is_left_out_and_said(snapshot: Make) -> None:
    name = "vllm:generation_tokens_total"
    d = delta(
        snapshot(f'{name}{{engine="0"}} 1', f'{name}{{engine="1"}} 1'),
        snapshot(f'{name}{{engine="0"}} NaN', f'{name}{{engine="1"}} 5'),
        1.0,
    )
    assert d.generation_tokens == 4
    assert any("not a number" in warning for warning in d.warnings)


def test_c70_old_names_only(snapshot: Make) -> None:
    old = "vllm:gpu_prefix_cache"
    d = delta(
        snapshot(f"{old}_queries_total 0", f"{old}_hits_total 0"),
        snapshot(f"{old}_queries_total 100", f"{old}_hits_total 25"),
        1.0,
    )
    assert d.prefix_cache_hit_rate == 0.25


def test_c70_both_names_count_once(snapshot: Make) -> None:
    d = delta(
        snapshot("vllm:gpu_prefix_cache_hits_total 0", "vllm:prefix_cache_hits_total 0"),
        snapshot("vllm:gpu_prefix_cache_hits_total 25", "vllm:prefix_cache_hits_total 25"),
        1.0,
    )
    assert d.prefix_cache_hits == 25


def test_c71_an_empty_snapshot_gives_nothing_not_zero(snapshot: Make) -> None:
    d = delta(parse(""), snapshot(*spec_rows(0, 5, 15, 6)), 1.0)
    assert d.drafts is None
    assert d.acceptance_rate is None
    assert any("not available" in warning for warning in d.warnings)


def test_c73_increase_over_a_reset() -> None:
    assert increase([100, 150, 20, 60]) == (110, True)
    assert increase([100, 150, 160]) == (60, False)


def test_c73_a_falling_counter_voids_the_window(snapshot: Make) -> None:
    d = delta(snapshot("vllm:generation_tokens_total 100"), snapshot("vllm:generation_tokens_total 60"), 1.0)
    assert d.reset_detected
    assert d.generation_tokens is None


def test_c73_one_engine_of_two_restarting_is_seen(snapshot: Make) -> None:
    name = "vllm:generation_tokens_total"
    d = delta(
        snapshot(f'{name}{{engine="0"}} 100', f'{name}{{engine="1"}} 100'),
        snapshot(f'{name}{{engine="0"}} 900', f'{name}{{engine="1"}} 50'),
        1.0,
    )
    assert d.reset_detected


def test_c73_a_vanished_row_is_a_reset(snapshot: Make) -> None:
    name = "vllm:generation_tokens_total"
    d = delta(snapshot(f'{name}{{engine="0"}} 1', f'{name}{{engine="1"}} 1'), snapshot(f'{name}{{engine="0"}} 9'), 1.0)
    assert d.reset_detected


@pytest.mark.parametrize("evidence", ["process_start_time_seconds", "vllm:generation_tokens_created"])
def test_c74_a_restart_behind_a_larger_value(snapshot: Make, evidence: str) -> None:
    d = delta(
        snapshot("vllm:generation_tokens_total 100", f"{evidence} 1.79e9"),
        snapshot("vllm:generation_tokens_total 250", f"{evidence} 1.80e9"),
        1.0,
    )
    assert d.reset_detected
    assert d.generation_tokens is None
    assert any(evidence in warning for warning in d.warnings)


def test_c75_positions_missing_before_began_at_zero(snapshot: Make) -> None:
    name = f"{SPEC}_accepted_tokens_per_pos_total"
    before = snapshot(
        *spec_rows(0, 100, 200, 100), *(f'{name}{{engine="0",position="{p}"}} {v}' for p, v in ((0, 60), (1, 40)))
    )
    after = snapshot(
        *spec_rows(0, 200, 500, 220),
        *(f'{name}{{engine="0",position="{p}"}} {v}' for p, v in ((0, 130), (1, 70), (2, 20))),
    )
    d = delta(before, after, 1.0)
    assert d.accepted_per_position == (70, 30, 20)
    assert d.acceptance_per_position == pytest.approx((0.7, 0.3, 0.2))
    assert d.warnings == ()


def test_c75_rising_positions_only_warn(snapshot: Make) -> None:
    name = f"{SPEC}_accepted_tokens_per_pos_total"
    after = snapshot(*spec_rows(0, 10, 20, 12), f'{name}{{position="0"}} 4', f'{name}{{position="1"}} 8')
    d = delta(snapshot(), after, 1.0)
    assert d.accepted_per_position == (4, 8)
    assert any("rise with the position" in warning for warning in d.warnings)


def test_c76_no_drafts_is_not_an_acceptance_of_zero(snapshot: Make) -> None:
    d = delta(snapshot(*spec_rows(0, 7, 21, 7)), snapshot(*spec_rows(0, 7, 21, 7)), 1.0)
    assert d.drafts == 0
    assert d.acceptance_rate is None
    assert d.mean_acceptance_length is None
    assert d.acceptance_per_position == ()


def test_c77_both_definitions_of_acceptance(snapshot: Make) -> None:
    d = delta(snapshot(*spec_rows(0, 0, 0, 0)), snapshot(*spec_rows(0, 100, 300, 120)), 1.0)
    assert d.acceptance_rate == pytest.approx(0.40)
    assert d.mean_acceptance_length == pytest.approx(2.2)


def test_c83_engines_with_different_buckets_keep_the_common_bounds(snapshot: Make) -> None:
    name = "vllm:time_to_first_token_seconds"
    rows = [
        *(f'{name}_bucket{{engine="0",le="{le}"}} {v}' for le, v in (("0.1", 3), ("0.5", 8), ("+Inf", 10))),
        *(f'{name}_bucket{{engine="1",le="{le}"}} {v}' for le, v in (("0.2", 1), ("0.5", 4), ("+Inf", 5))),
        *(f'{name}_count{{engine="{e}"}} {v}' for e, v in ((0, 10), (1, 5))),
        *(f'{name}_sum{{engine="{e}"}} {v}' for e, v in ((0, 3.0), (1, 1.5))),
    ]
    d = delta(snapshot(), snapshot(*rows), 1.0)
    assert d.time_to_first_token is not None
    assert d.time_to_first_token.buckets == ((0.5, 12), (float("inf"), 15))
    assert d.time_to_first_token.mean == pytest.approx(0.3)
    assert any("differ" in warning for warning in d.warnings)
