"""Each fault of `speculative-config` is one sentence with line and cure."""

from collections.abc import Callable

import pytest

from loadgen.errors import UsageError
from loadgen.profiles.model import ServerProfile

ProfileOf = Callable[[str], ServerProfile]
NGRAM = "method: ngram\nnum_speculative_tokens: 4\nprompt_lookup_min: 2\nprompt_lookup_max: 5\n"
EAGLE = "method: eagle\nmodel: me/head\nnum_speculative_tokens: 2\n"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            "method: ngrams\nnum_speculative_tokens: 4",
            r"mine\.yaml:1: unknown method 'ngrams' \(did you mean ngram\?\)",
        ),
        ("method: warp\nnum_speculative_tokens: 4", r"unknown method 'warp'; known are ngram, ngram_gpu, suffix"),
        ("num_speculative_tokens: 4", "names no method"),
        ("method: ngram", "ngram has no num_speculative_tokens; add it"),
        ("method: mlp_speculator\nmodel: x\nnum_speculative_tokens: 4", "cannot load it"),
        ("method: extract_hidden_states\nnum_speculative_tokens: 1", "speeds nothing up"),
        ("method: deepseek_mtp\nnum_speculative_tokens: 1", "write mtp"),
        (NGRAM.replace("tokens: 4", "tokens: 0"), r"mine\.yaml:3: num_speculative_tokens is 0"),
        (NGRAM.replace("tokens: 4", "tokens: -1"), "num_speculative_tokens is -1"),
        (NGRAM.replace("tokens: 4", "tokens: four"), "num_speculative_tokens is 'four'"),
        (NGRAM.replace("tokens: 4", "tokens: true"), "num_speculative_tokens is True"),
        (NGRAM.replace("min: 2", "min: 6"), "prompt_lookup_min 6 is above prompt_lookup_max 5; swap"),
        (NGRAM.replace("min: 2", "min: 0"), r"mine\.yaml:4: prompt_lookup_min is 0"),
        (NGRAM + "model: some/model", r"mine\.yaml:6: model belongs to .*eagle.*, not to ngram; remove it"),
        (NGRAM + "suffix_decoding_max_tree_depth: 24", "belongs to suffix, not to ngram"),
        (NGRAM + "promt_lookup_max: 3", r"is no field .*did you mean prompt_lookup_max"),
        (NGRAM + "disable_by_batch_size: 32", r"mine\.yaml:6: disable_by_batch_size does nothing .*0\.24 on"),
        (EAGLE + "tensor_parallel_size: 2", "write draft_tensor_parallel_size"),
        (EAGLE + "draft_tensor_parallel_size: 0", "draft_tensor_parallel_size is 0"),
        (EAGLE + "prompt_lookup_max: 3", "belongs to ngram, ngram_gpu, not to eagle"),
        (EAGLE + "enable_adaptive_verification: true", "belongs to dspark"),
        ("method: eagle\nnum_speculative_tokens: 2", "model is missing; add it"),
        ("method: draft_model\nmodel: ''\nnum_speculative_tokens: 2", "model is ''"),
        (NGRAM + "num_speculative_tokens_per_batch_size: [[2, 4, 1]]", r"mine\.yaml:6: .*must start at 1"),
        ("method: suffix\nnum_speculative_tokens_per_batch_size: [[1, 4, 2]]", "suffix with a schedule ends vLLM"),
        (
            "method: medusa\nmodel: m\nnum_speculative_tokens: 2\nnum_speculative_tokens_per_batch_size: [[1, 4, 2]]",
            "medusa with a schedule ends vLLM",
        ),
        (EAGLE + "synthetic_acceptance_rates: [0, 0]", "needs rejection_sample_method: synthetic"),
        (EAGLE + "rejection_sample_method: synthetic", "exactly one of"),
        (
            EAGLE + "rejection_sample_method: synthetic\nsynthetic_acceptance_rates: [0]",
            "has 1 entries; give one for each of the 2",
        ),
        (
            EAGLE + "rejection_sample_method: synthetic\nsynthetic_acceptance_rates: [0.2, 0.4]",
            "cannot be accepted more often",
        ),
        (EAGLE + "rejection_sample_method: synthetic\nsynthetic_acceptance_length: 3.5", "must lie in 1 to 3"),
        (EAGLE + "rejection_sample_method: synthetic\nsynthetic_acceptance_rates: [1.2, 0]", "rates.0 is 1.2"),
    ],
)
def test_fault(profile_of: ProfileOf, lines: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        profile_of(lines)

    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("mine.yaml")


def test_a_lookup_without_bounds_is_said_to_match_seldom(profile_of: ProfileOf) -> None:
    assert "prompt_lookup_min" in profile_of("method: ngram\nnum_speculative_tokens: 4").notes[0]
    assert profile_of(NGRAM).notes == ()


def test_a_model_length_without_effect_and_a_capped_schedule_are_said(profile_of: ProfileOf) -> None:
    assert "no effect" in profile_of(EAGLE + "max_model_len: 100").notes[0]
    notes = profile_of(EAGLE + "num_speculative_tokens_per_batch_size: [[1, 4, 9]]").notes
    assert "K 9 is above num_speculative_tokens 2" in notes[0]


def test_a_mean_acceptance_length_becomes_rates_by_vllms_rule(profile_of: ProfileOf) -> None:
    lines = EAGLE.replace("tokens: 2", "tokens: 3") + "rejection_sample_method: synthetic\n"

    half = profile_of(lines + "synthetic_acceptance_length: 2.5").speculative
    none = profile_of(lines + "synthetic_acceptance_length: 1.0").speculative

    assert half is not None
    assert half.synthetic_acceptance_rates == (1.0, 0.5, 0.0)
    assert none is not None
    assert none.is_cost_probe


def test_mtp_needs_no_model(profile_of: ProfileOf) -> None:
    assert profile_of("method: mtp\nnum_speculative_tokens: 1").method == "mtp"
