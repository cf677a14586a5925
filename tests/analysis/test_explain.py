import math
from dataclasses import replace
from typing import Any

import pytest

from loadgen.analysis.acceptance import pool
from loadgen.analysis.findings import analyse
from loadgen.analysis.model import Explanation, LevelFinding
from loadgen.metrics.model import CounterDelta, HistogramDelta

C86 = {1: 1.7, 2: 1.6, 4: 1.35, 8: 1.1, 16: 0.95, 32: 0.8}


def parts(explanation: Explanation) -> float:
    return math.fsum(
        (
            explanation.acceptance,
            explanation.coverage,
            explanation.step_rate,
            explanation.batch,
            explanation.first_tokens,
            explanation.residual,
        )
    )


def levels(run_of: Any, manifest: Any) -> tuple[LevelFinding, ...]:
    found: tuple[LevelFinding, ...] = analyse(manifest(), run_of(C86)).conditions[0].profiles[0].levels
    return found


def test_the_parts_add_up_to_the_log_speed_up(run_of: Any, manifest: Any) -> None:
    for level in levels(run_of, manifest):
        assert level.explanation is not None
        assert parts(level.explanation) == pytest.approx(level.explanation.log_speedup, abs=1e-12)
        # Arithmetic against geometric pooling of three repeats within 1 %.
        assert math.exp(level.explanation.log_speedup) == pytest.approx(C86[level.concurrency], rel=1e-3)
        assert level.explanation.residual == pytest.approx(0.0, abs=1e-9)
        # 1.25 of 4 accepted in 80 % of the steps; the cell's steps give 2 tokens.
        assert level.explanation.acceptance == pytest.approx(math.log(2.25))
        assert level.explanation.coverage == pytest.approx(math.log(2.0 / 2.25))


def test_the_break_even_length_turns_the_gain_into_one(run_of: Any, manifest: Any) -> None:
    for level in levels(run_of, manifest):
        assert level.explanation is not None
        assert level.tokens_per_step is not None
        expected = level.tokens_per_step / math.exp(level.explanation.log_speedup)
        assert level.explanation.break_even_tokens_per_step == pytest.approx(expected)


def test_the_naive_formula_holds_at_the_lowest_level_and_fails_above(run_of: Any, manifest: Any) -> None:
    first, *_, last = levels(run_of, manifest)
    assert first.explanation is not None
    assert last.explanation is not None
    assert first.explanation.naive_speedup == pytest.approx(1.7, rel=1e-2)
    assert last.explanation.naive_speedup > 1.5
    assert "no longer free" in last.explanation.sentence


def test_nearly_proportional_throughput_is_memory_bound(run_of: Any, manifest: Any) -> None:
    found = [level.explanation.regime for level in levels(run_of, manifest) if level.explanation]
    # The test's baseline grows with level ** 0.9: an elasticity of 0.1.
    assert set(found) == {"memory-bound"}


def test_without_counters_there_is_no_explanation(run_of: Any, manifest: Any) -> None:
    cells = [replace(cell, window=None, idle=None) for cell in run_of(C86)]
    found = analyse(manifest(), cells).conditions[0].profiles[0].levels
    assert all(level.explanation is None for level in found)


def delta(drafts: float, draft_tokens: float, accepted: float, positions: tuple[float, ...]) -> CounterDelta:
    return CounterDelta(
        1.0,
        drafts=drafts,
        draft_tokens=draft_tokens,
        accepted_tokens=accepted,
        accepted_per_position=positions,
        iteration_tokens=HistogramDelta(10.0, 20.0),
    )


def test_c61_counts_are_added_before_the_ratio() -> None:
    pooled = pool([delta(400, 1200, 600, (350, 250)), delta(100, 300, 90, (60, 20, 10))])
    assert pooled is not None
    assert pooled.acceptance_rate == pytest.approx(0.46)
    assert pooled.mean_acceptance_length == pytest.approx(2.38)
    assert pooled.acceptance_per_position == pytest.approx((410 / 500, 270 / 500, 10 / 500))


def test_c77_both_definitions_of_acceptance() -> None:
    pooled = pool([delta(100, 300, 120, ())])
    assert pooled is not None
    assert pooled.acceptance_rate == pytest.approx(0.40)
    assert pooled.mean_acceptance_length == pytest.approx(2.2)


def test_a_figure_that_one_cell_lacks_is_none_and_never_a_part() -> None:
    pooled = pool([delta(400, 1200, 600, ()), CounterDelta(1.0), None])
    assert pooled is not None
    assert (pooled.drafts, pooled.acceptance_rate, pooled.duration_s) == (None, None, 2.0)
    assert pool([None]) is None
