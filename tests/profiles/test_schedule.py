"""vLLM's own rules for the schedule; the rows were tried on vLLM 0.32.0 (num_speculative_tokens 3, max_num_seqs 10)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.errors import UsageError
from loadgen.profiles.model import BatchSchedule
from loadgen.profiles.schedule import parse_schedule, schedule_lookup


@pytest.mark.parametrize(
    ("given_value", "parsed", "lookup"),
    [
        # A gap carries the K before it, the tail the last K.
        ([[1, 4, 2], [6, 8, 0]], ((1, 4, 2), (6, 8, 0)), [2, 2, 2, 2, 2, 0, 0, 0, 0, 0]),
        ([[5, 8, 0], [1, 4, 3]], ((1, 4, 3), (5, 8, 0)), [3, 3, 3, 3, 0, 0, 0, 0, 0, 0]),
        # K above num_speculative_tokens is capped, without a word from vLLM.
        ([[1, 4, 9]], ((1, 4, 9),), [3] * 10),
        ([["1", "4", "2"]], ((1, 4, 2),), [2] * 10),
        ([(1, 100, 1)], ((1, 100, 1),), [1] * 10),
        ("[[1,2,3],[3,256,0]]", ((1, 2, 3), (3, 256, 0)), [3, 3, 0, 0, 0, 0, 0, 0, 0, 0]),
        # K may rise again: vLLM checks no order of the Ks.
        ([[1, 2, 1], [3, 4, 3]], ((1, 2, 1), (3, 4, 3)), [1, 1, 3, 3, 3, 3, 3, 3, 3, 3]),
    ],
)
def test_what_vllm_takes_is_taken_with_its_meaning(
    given_value: object, parsed: BatchSchedule, lookup: list[int]
) -> None:
    schedule = parse_schedule(given_value)

    assert schedule == parsed
    assert schedule_lookup(schedule, max_k=3, max_num_seqs=10)[1:] == lookup


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([[2, 4, 1]], "must start at 1"),
        ([[1, 4, 2], [4, 8, 1]], "overlap; start the second at 5"),
        ([], "empty"),
        ({"1-4": 2}, "a mapping"),
        (None, "missing"),
        (7, "a number"),
        ("[[1,4", "no JSON"),
        ([[1, 4, -1]], "negative"),
        ([[4, 1, 2]], "ends before it starts"),
        ([[0, 4, 2]], "not positive"),
        ([[-3, 4, 2]], "not positive"),
        ([[1, 4]], "not three numbers"),
        ([5], "not three numbers"),
        ([[1, 4, 2.5]], "no whole number"),
        ([[1, 4, True]], "no whole number"),
        ([[1, 4, "two"]], "no whole number"),
    ],
)
def test_what_vllm_refuses_is_refused_in_one_sentence(value: object, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        parse_schedule(value)

    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(("max_k", "max_num_seqs"), [(0, 8), (3, 0)])
def test_a_lookup_needs_a_k_and_a_batch(max_k: int, max_num_seqs: int) -> None:
    with pytest.raises(UsageError, match="must be 1 or more"):
        schedule_lookup(((1, 4, 2),), max_k=max_k, max_num_seqs=max_num_seqs)


@given(
    lengths=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(0, 5)), min_size=1, max_size=5),
    max_num_seqs=st.integers(1, 30),
)
def test_every_batch_has_the_k_of_the_last_range_that_began(
    lengths: list[tuple[int, int, int]], max_num_seqs: int
) -> None:
    ranges, end = [], 0
    for index, (gap, length, k) in enumerate(lengths):
        first = end + 1 + (gap if index else 0)
        end = first + length - 1
        ranges.append((first, end, k))

    lookup = schedule_lookup(parse_schedule(ranges), max_k=3, max_num_seqs=max_num_seqs)

    for batch in range(1, max_num_seqs + 1):
        assert lookup[batch] == min(3, [k for first, _, k in ranges if first <= batch][-1])
