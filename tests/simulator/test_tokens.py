"""The tokenizer is reversible, stateless and about four characters a token."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.simulator.tokens import (
    EOS,
    IM_START,
    VOCAB_SIZE,
    IncrementalDecoder,
    decode,
    encode,
    render_chat,
    token_bytes,
)

ENGLISH = (
    "The scheduler admits waiting requests in order while the token budget of a step lasts, and it keeps the ones "
    "that already run. A long prompt is computed in chunks, so that others can go on generating in between. "
)
CODE = (
    "def total(values):\n    result = 0\n    for value in values:\n        if value > limit:\n"
    "            result += value\n    return result\n"
)


@given(st.text())
@settings(max_examples=200, deadline=None)
def test_decode_gives_back_what_was_encoded(text: str) -> None:
    clean = text.encode("utf-8", "replace").decode()
    assert decode(encode(clean), skip_special=False) == clean


@given(st.integers(min_value=16, max_value=VOCAB_SIZE - 1))
def test_every_id_stands_for_bytes_of_its_own(token: int) -> None:
    piece = token_bytes(token)
    assert 1 <= len(piece) <= 6
    assert int.from_bytes(piece, "big") + 16 + sum(256**k for k in range(1, len(piece))) == token


@pytest.mark.parametrize("text", [ENGLISH, CODE])
def test_a_token_is_about_four_characters(text: str) -> None:
    assert 3.0 <= len(text) / len(encode(text)) <= 5.0


def test_ids_are_the_same_in_another_process() -> None:
    script = f"from loadgen.simulator.tokens import encode; print(encode({CODE!r}))"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == str(encode(CODE))


def test_a_character_cut_between_tokens_is_held_back() -> None:
    ids = [token for byte in "日本🙂".encode() for token in [16 + byte]]
    decoder = IncrementalDecoder()
    pieces = [decoder.push([token]) for token in ids]
    assert "".join(pieces) + decoder.push([], final=True) == "日本🙂"
    assert pieces[0] == ""
    assert "�" not in "".join(pieces)


def test_chat_is_rendered_with_its_own_special_ids() -> None:
    text = render_chat([("system", "be brief"), ("user", "hi")])
    assert text == "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    ids = encode(text)
    assert ids[0] == IM_START
    assert ids.count(EOS) == 2
    assert decode(ids, skip_special=False) == text
    assert "<|" not in decode(ids)


def test_an_id_outside_the_vocabulary_is_refused() -> None:
    with pytest.raises(ValueError, match="outside the vocabulary"):
        decode([VOCAB_SIZE])
    with pytest.raises(ValueError, match="outside the vocabulary"):
        decode([-1])
