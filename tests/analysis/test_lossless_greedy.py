"""The greedy verdict: near ties pass, hard divergences do not, and nothing passes untested."""

import numpy as np
import pytest

from loadgen.analysis.lossless_greedy import (
    ACCEPTED_FAULT_RATE,
    dtype_kind,
    false_alarm_rate,
    judge_greedy,
    rate,
    tolerance,
)
from loadgen.analysis.lossless_model import Arm, Divergence, Drafted, GreedyFinding, Quality
from loadgen.analysis.lossless_verdict import judge

ENOUGH = Drafted(1000, 4000, 1500, 5000)


def divergence(prompt: int, gap: float | None = 0.05, own_gap: float | None = None, concurrency: int = 1) -> Divergence:
    return Divergence(f"p{prompt}", concurrency, 27, 1, 2, gap, own_gap)


def arm(*divergences: Divergence, prompts: int = 40, concurrency: int = 1) -> Arm:
    parted = {d.prompt for d in divergences}
    firsts = tuple(d.position for d in divergences)[: len(parted)]
    return Arm(concurrency, prompts, prompts - len(parted), 2500, firsts, divergences)


def verdict(*divergences: Divergence, control: Arm | None = None, drafted: Drafted = ENOUGH) -> GreedyFinding:
    return judge_greedy([arm(*divergences)], [control or arm()], "16-bit", drafted, 1)


def test_answers_that_all_part_at_near_ties_are_the_same_quality() -> None:
    # vllm#41758: 20 of 20 answers differ, the control never; that alone is no loss.
    found = judge_greedy([arm(*(divergence(i) for i in range(20)), prompts=20)], [arm(prompts=20)], "16-bit", ENOUGH, 1)

    assert found.quality is Quality.SAME
    assert (found.exact.count, found.control_exact.count) == (0, 20)
    assert found.soft_divergences == 20
    assert found.median_first_divergence == 27


@pytest.mark.parametrize("gap", [0.9, None])
def test_two_prompts_with_a_hard_divergence_differ(gap: float | None) -> None:
    found = verdict(divergence(1, gap), divergence(2, gap), divergence(3, 0.1))

    assert found.quality is Quality.DIFFERS
    assert (found.hard.count, found.hard.n, found.soft_divergences) == (2, 40, 1)
    low, high = found.hard.ci95
    assert low < 2 / 40 < high


def test_one_hard_prompt_asks_for_a_second_set() -> None:
    once = verdict(divergence(1, None))
    again = judge_greedy([arm(divergence(1, None), prompts=80)], [arm(prompts=80)], "16-bit", ENOUGH, 2)

    assert (once.quality, once.wants_more) == (Quality.SAME, True)
    assert (again.quality, again.wants_more) == (Quality.SAME, False)


def test_one_prompt_that_is_hard_at_both_concurrencies_counts_once() -> None:
    arms = [arm(divergence(1, None)), arm(divergence(1, None, concurrency=32), concurrency=32)]

    assert judge_greedy(arms, [arm()], "16-bit", ENOUGH, 1).hard.count == 1


def test_the_cause_is_the_drafts_only_if_the_server_alone_would_not_say_so() -> None:
    drafts = verdict(divergence(1, 1.0, 1.0), divergence(2, None, None))
    server = verdict(divergence(1, 1.0, 0.0), divergence(2, 2.0, 0.0))

    assert "verifying drafts" in drafts.reason
    assert "more than the speculation differs" in server.reason


def test_a_control_that_is_as_hard_gives_no_verdict() -> None:
    hard = [divergence(i, None) for i in range(3)]
    found = verdict(*hard, control=arm(*hard))

    assert found.quality is Quality.NOT_TESTED
    assert "VLLM_BATCH_INVARIANT" in found.reason


def test_many_hard_prompts_differ_whatever_one_of_the_control_does() -> None:
    assert verdict(*(divergence(i, None) for i in range(12)), control=arm(divergence(1, None))).quality is (
        Quality.DIFFERS
    )


def test_zero_acceptance_over_a_hundred_drafts_is_named_as_the_servers_fault() -> None:
    found = verdict(drafted=Drafted(100, 400, 0, 5000))

    assert found.quality is Quality.NOT_TESTED
    assert "fault of the server" in found.reason


def test_a_difference_is_reported_even_where_few_drafts_were_accepted() -> None:
    assert verdict(divergence(1, None), divergence(2, None), drafted=Drafted(9, 9, 3, 99)).quality is Quality.DIFFERS


def test_the_false_alarm_rate_is_that_of_the_rule() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.binomial(40, ACCEPTED_FAULT_RATE, (2, 200_000))
    called = np.mean((first >= 2) | ((first == 1) & (second >= 1)))

    assert false_alarm_rate(40) == pytest.approx(called, abs=0.002)
    assert false_alarm_rate(40) < 0.025


def test_the_control_calibrates_the_tolerance_within_the_dtypes_ends() -> None:
    few = tolerance("16-bit", [divergence(1, 0.01)])
    small = tolerance("16-bit", [divergence(i, 0.01) for i in range(9)])
    middle = tolerance("16-bit", [divergence(i, 0.1) for i in range(9)])
    large = tolerance("16-bit", [divergence(i, 3.0) for i in range(9)])

    assert (few.nat, few.source) == (0.25, "dtype")
    assert (small.nat, small.source) == (0.1, "control")
    assert middle.nat == pytest.approx(0.15)
    assert large.nat == 0.25


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        ({}, "16-bit"),
        ({"dtype": "bfloat16", "quantization": None}, "16-bit"),
        ({"dtype": "float32"}, "float32"),
        ({"dtype": "bfloat16", "quantization": "fp8"}, "quantised"),
        ({"dtype": "bfloat16", "kv_cache_dtype": "fp8_e4m3"}, "quantised"),
        ({"quantization": "compressed-tensors-w4a16"}, "quantised"),
    ],
)
def test_the_dtype_is_read_from_what_the_server_tells(facts: dict[str, object], kind: str) -> None:
    assert dtype_kind(facts) == kind


def test_a_rate_has_its_exact_interval() -> None:
    assert rate(0, 40).ci95 == pytest.approx((0.0, 0.0881), abs=1e-4)
    assert rate(0, 0).ci95 == (0.0, 1.0)


def test_the_whole_differs_if_a_part_does_and_is_untested_if_a_part_is() -> None:
    same, differs, untested = (
        verdict(),
        verdict(divergence(1, None), divergence(2, None)),
        verdict(drafted=Drafted(0, 0, 0, 9)),
    )

    assert judge("ngram", "baseline", same, ()).quality is Quality.SAME
    assert judge("ngram", "baseline", differs, ()).quality is Quality.DIFFERS
    assert judge("ngram", "baseline", untested, ()).quality is Quality.NOT_TESTED
    assert judge("ngram", "baseline", None, ()).quality is Quality.NOT_TESTED
