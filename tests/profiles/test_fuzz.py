"""Whatever stands in the file, it is a profile or one sentence; and what is taken survives being written."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.errors import UsageError
from loadgen.profiles.compat import check_profile
from loadgen.profiles.loader import dump_profile, parse_profile
from loadgen.profiles.schema import METHODS, all_fields

SCALARS = st.none() | st.booleans() | st.integers(-3, 300) | st.floats() | st.sampled_from(["", "x", "4", "synthetic"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2)
)
FIELDS = st.dictionaries(st.sampled_from(sorted(all_fields())), VALUES, max_size=5)


def refusal_of(text: str) -> str | None:
    """The sentence that refuses it; None if it is a profile."""
    try:
        profile = parse_profile(text, name="f", label="f.yaml")
        check_profile(profile, vllm_version="0.32.0", model="any/model")
    except UsageError as error:
        return str(error)
    return None


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_any_text_is_a_profile_or_one_sentence(text: str) -> None:
    sentence = refusal_of(text)

    assert sentence is None or sentence.startswith("f.yaml")


@settings(max_examples=200)
@given(method=st.sampled_from([*METHODS, "x"]), fields=FIELDS, k=st.integers(-1, 200))
def test_any_fields_are_a_profile_or_one_sentence(method: str, fields: dict[str, object], k: int) -> None:
    config = {**fields, "method": method, "num_speculative_tokens": k}
    text = yaml.safe_dump({"speculative-config": config})

    sentence = refusal_of(text)

    if sentence is not None:
        assert "\n" not in sentence
        return
    profile = parse_profile(text, name="f", label="f.yaml")
    again = parse_profile(dump_profile(profile), name="f", label="f.yaml")
    assert repr(again.speculative) == repr(profile.speculative)  # as text: a NaN is not equal to itself


@pytest.mark.parametrize(
    "text",
    [
        *("a: !!python/object:os.system x", "? [a]\n: 1", "a: \x00", "a: &x [*x]", "[" * 5000, "a: *gone"),
        *("a: 2026-02-30", "a: " + "[" * 5000 + "]" * 5000),
    ],
)
def test_what_yaml_can_say_and_a_profile_cannot(text: str) -> None:
    sentence = refusal_of(text)

    assert sentence is not None
    assert "\n" not in sentence


def test_aliases_of_aliases_are_refused_at_once() -> None:
    bomb = "\n".join(
        [f"a0: &a0 [{', '.join('x' * 9)}]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    )
    with pytest.raises(UsageError, match="aliases"):
        parse_profile(bomb, name="bomb", label="bomb.yaml")
