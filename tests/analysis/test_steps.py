import math

import pytest

from loadgen.analysis.steps import DECODE_ONLY, by_chance, step_groups
from loadgen.metrics.model import CounterDelta, HistogramDelta

BOUNDS = (1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, math.inf)


def window(decoding: int, carrying: dict[int, int], batch: int, prompt: int, k: int = 0) -> CounterDelta:
    """`decoding` steps of `batch` requests, and steps with prompts: {prompts in it: how many such steps}."""
    per_step = batch * (1 + 0.5 * k)
    sizes = [per_step] * decoding + [per_step + n * prompt for n, count in carrying.items() for _ in range(count)]
    firsts = sum(n * count for n, count in carrying.items())
    steps = len(sizes)
    drafts = steps * batch if k else None
    return CounterDelta(
        duration_s=1.0,
        generation_tokens=steps * per_step,
        prompt_tokens=firsts * prompt,
        drafts=drafts,
        draft_tokens=k * drafts if drafts else None,
        inter_token_latency=HistogramDelta(steps * batch, 1.0),
        iteration_tokens=HistogramDelta(
            steps, sum(sizes), tuple((bound, float(sum(size <= bound for size in sizes))) for bound in BOUNDS)
        ),
        time_to_first_token=HistogramDelta(firsts, 1.0),
    )


def test_buckets_tell_steps_that_carry_prompts_from_those_that_decode() -> None:
    only, carrying = step_groups([window(90, {1: 10}, 16, 457)], 16)
    assert (only.share, only.prompts, only.prompt_tokens) == pytest.approx((0.9, 0.0, 0.0))
    assert (carrying.share, carrying.prompts) == pytest.approx((0.1, 1.0))
    assert carrying.prompt_tokens == pytest.approx(457)


def test_steps_with_several_prompts_share_out_all_of_them() -> None:
    groups = step_groups([window(80, {1: 10, 2: 6, 5: 4}, 60, 457), window(80, {1: 12, 2: 8}, 60, 457)], 64)
    assert math.fsum(group.share for group in groups) == pytest.approx(1.0)
    firsts = 10 + 12 + 20 + 12 + 16
    assert math.fsum(group.share * group.prompts for group in groups) == pytest.approx(firsts / 200, rel=0.05)
    assert math.fsum(group.share * group.prompt_tokens for group in groups) == pytest.approx(457 * firsts / 200)


def test_drafts_raise_what_a_step_that_only_decodes_may_make() -> None:
    # 16 requests of 3 drafts make up to 64 tokens a step, here 40.
    groups = step_groups([window(75, {1: 25}, 16, 457, k=3)], 16)
    assert [round(group.share, 3) for group in groups] == [0.75, 0.25]


def test_prompts_too_short_for_the_buckets_fall_by_chance() -> None:
    groups = step_groups([window(90, {1: 10}, 20, 5)], 32)
    assert groups == by_chance(100, 10, 50)
    assert groups[1].share == pytest.approx(1 - math.exp(-0.1))
    assert groups[1].share * groups[1].prompt_tokens == pytest.approx(0.5)


def test_without_prompts_all_steps_decode() -> None:
    assert step_groups([window(50, {}, 8, 457)], 8) == DECODE_ONLY
    assert step_groups([], 8) == DECODE_ONLY
    assert by_chance(10, 0, 0) == DECODE_ONLY
