"""Derived profiles, and the file that vLLM gets."""

from pathlib import Path

import pytest
import yaml

from loadgen.errors import UsageError
from loadgen.profiles.derive import with_k, with_schedule
from loadgen.profiles.loader import dump_profile, list_profiles, load_profile, parse_profile


def test_every_profile_survives_being_written_and_read(shipped: Path) -> None:
    for name in list_profiles(shipped):
        profile = load_profile(name, shipped)
        text = dump_profile(profile)

        again = parse_profile(text, name=name, label=name)

        assert isinstance(yaml.safe_load(text), dict)
        assert (again.settings, again.speculative) == (profile.settings, profile.speculative)


def test_another_k_changes_k_alone(shipped: Path) -> None:
    derived = with_k(load_profile("ngram", shipped), 2)

    assert derived.name == "ngram-k2"
    assert derived.path is None
    assert derived.speculative is not None
    assert dict(derived.speculative.raw) == {
        "method": "ngram",
        "num_speculative_tokens": 2,
        "prompt_lookup_min": 2,
        "prompt_lookup_max": 5,
    }


def test_a_schedule_brings_its_own_largest_k(shipped: Path) -> None:
    derived = with_schedule(load_profile("ngram", shipped), ((9, 256, 0), (1, 8, 2)))

    assert derived.name == "ngram-schedule"
    assert derived.speculative is not None
    assert derived.speculative.schedule == ((1, 8, 2), (9, 256, 0))
    assert derived.speculative.num_speculative_tokens == 2
    assert "[1, 8, 2]" in dump_profile(derived)
    assert with_k(derived, 3).speculative is not None
    assert with_k(derived, 3).settings["speculative-config"].get("num_speculative_tokens_per_batch_size") is None


def test_an_all_zero_schedule_keeps_the_profiles_k(shipped: Path) -> None:
    derived = with_schedule(load_profile("ngram", shipped), ((1, 256, 0),))

    assert derived.speculative is not None
    assert derived.speculative.num_speculative_tokens == 4


def test_the_cost_probe_rejects_at_every_k(shipped: Path) -> None:
    for k in (1, 7):
        derived = with_k(load_profile("cost-probe", shipped), k).speculative
        assert derived is not None
        assert derived.synthetic_acceptance_rates == (0.0,) * k
        assert derived.is_cost_probe


def test_unknown_acceptance_is_not_made_up() -> None:
    text = (
        "speculative-config: {method: eagle, model: m, num_speculative_tokens: 2, "
        "rejection_sample_method: synthetic, synthetic_acceptance_rates: [0.8, 0.5]}"
    )
    profile = parse_profile(text, name="p", label="p.yaml")

    shorter = with_k(profile, 1).speculative
    assert shorter is not None
    assert shorter.synthetic_acceptance_rates == (0.8,)
    with pytest.raises(UsageError, match="needs more"):
        with_k(profile, 3)


def test_what_cannot_be_derived_is_refused(shipped: Path) -> None:
    with pytest.raises(UsageError, match="does not speculate"):
        with_k(load_profile("baseline", shipped), 2)
    with pytest.raises(UsageError, match="1 or more"):
        with_k(load_profile("ngram", shipped), 0)
    with pytest.raises(UsageError, match="ends vLLM's engine"):
        with_schedule(load_profile("suffix", shipped), ((1, 8, 4),))
