"""The vectorised lookup says what a plain search for the longest, then earliest, match says."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.simulator.lookup import draft_starts, draft_table
from loadgen.simulator.text import TextModel
from loadgen.simulator.tokens import encode, render_chat


def plain_start(context: list[int], low: int, high: int) -> int:
    """Where the draft begins: longest suffix first, leftmost place first; -1 for none."""
    for n in range(min(high, len(context) - 1), low - 1, -1):
        suffix = context[-n:]
        for at in range(len(context) - n):
            if context[at : at + n] == suffix:
                return at + n
    return -1


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=40),
    st.integers(1, 4),
    st.integers(0, 3),
)
@settings(max_examples=150, deadline=None)
def test_every_start_is_what_a_plain_search_finds(text: list[int], low: int, more: int) -> None:
    starts = draft_starts(np.array(text), low, low + more)
    for length in range(1, len(text) + 1):
        assert starts[length] == plain_start(text[:length], low, low + more), length


def test_vllms_own_example() -> None:
    # After 1 2 3 4 2 3 with n-grams of 2 to 3, vLLM drafts 4 2 3: only three tokens follow the match.
    starts = draft_starts(np.array([1, 2, 3, 4, 2, 3]), 2, 3)
    assert starts[6] == 3


def test_drafts_are_cut_at_the_texts_end_and_accepted_up_to_the_first_miss() -> None:
    prompt = tuple(encode(render_chat([("user", "Rewrite it.\n```\nalpha beta gamma delta\nalpha beta gamma\n```")])))
    answer = TextModel().continuation(prompt)
    table = draft_table(answer, 2, 5, 4)
    text = [*prompt, *answer.tokens]
    for out in range(1, answer.natural_length):
        context = text[: len(prompt) + out]
        start = plain_start(context, 2, 5)
        draft = context[start : start + 4] if start >= 0 else []
        right = 0
        answer.ensure(out + 5)
        while right < len(draft) and draft[right] == answer.tokens[out + right]:
            right += 1
        assert (table.length[out], table.accepted[out]) == (len(draft), right)
