import random

import pytest

from loadgen.analysis.by_prompt import PromptTime, by_prompt, prompt_notes
from loadgen.store.model import CellKey, Condition

CODE = Condition("code-edit", 512, 0.0)


def times(ratios: list[float], level: int = 8) -> list[PromptTime]:
    """Prompts that differ in their own time; the profile's is that over the ratio."""
    found = []
    for number, ratio in enumerate(ratios):
        own = 0.01 * (1 + number % 5)
        found.append(PromptTime(CellKey("baseline", CODE, level, 0), f"p{number}", own, 1.0))
        found.append(PromptTime(CellKey("ngram", CODE, level, 0), f"p{number}", own / ratio, 1.0 + ratio))
    return found


def test_the_prompts_own_time_cancels_in_its_pair() -> None:
    rows = times([1.25] * 10)
    random.Random(1).shuffle(rows)
    (found,) = by_prompt(rows, "baseline")
    assert found.n == 10
    assert found.tpot_speedup == pytest.approx(1.25)
    assert all(quartile == pytest.approx(1.25) for quartile in found.middle_half)
    assert found.gaining == 1.0


def test_prompts_with_more_tokens_per_chunk_gain_most() -> None:
    (found,) = by_prompt(times([0.8 + 0.05 * step for step in range(12)]), "baseline")
    assert found.with_length == pytest.approx(1.0)
    assert found.gaining == pytest.approx(7 / 12)
    (note,) = prompt_notes([found])
    assert "prompts with more tokens per chunk gain most" in note
    assert "of 12 prompts" in note


def test_a_prompt_that_one_server_lacks_is_left_out() -> None:
    rows = times([1.2] * 9)
    assert by_prompt(rows[:-1], "baseline")[0].n == 8
    assert by_prompt(rows[:-3], "baseline") == ()


def test_without_chunks_there_is_a_ratio_and_no_correlation() -> None:
    rows = [PromptTime(one.cell, one.prompt_id, one.tpot_s, None) for one in times([1.1, 1.3] * 5)]
    (found,) = by_prompt(rows, "baseline")
    assert found.with_length is None
    assert "rank correlation" not in prompt_notes([found])[0]


def test_other_repeats_are_no_partners() -> None:
    rows = times([1.2] * 8)
    moved = [PromptTime(CellKey("baseline", CODE, 8, 1), one.prompt_id, one.tpot_s, 1.0) for one in rows[::2]]
    assert by_prompt([*moved, *rows[1::2]], "baseline") == ()
