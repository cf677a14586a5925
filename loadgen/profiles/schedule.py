"""`num_speculative_tokens_per_batch_size`: reading and meaning, by vLLM's own rules.

Source of the rules: vllm/v1/spec_decode/dynamic/utils.py in vLLM 0.32.0.
"""

import json
from collections.abc import Sequence
from itertools import pairwise

from loadgen.errors import UsageError
from loadgen.profiles.model import BatchSchedule
from loadgen.profiles.values import short

_DIGITS = 20
_FORM = "write a list of [first batch, last batch, K], such as [[1,8,4],[9,256,0]]"


def parse_schedule(value: object) -> BatchSchedule:
    """The schedule, sorted by its first batch. `value` is JSON text or a list of three numbers each.

    Raises UsageError where vLLM would not start: no list, an empty one, an entry that is not three whole numbers,
    K < 0, a bound below 1, first > last, overlapping ranges, or a first range that does not start at 1. Gaps are
    allowed; `schedule_lookup` says what they mean.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise UsageError(f"The schedule {short(value)} is no JSON; {_FORM}.") from None
    if not isinstance(value, list | tuple):
        raise UsageError(f"The schedule is {_kind(value)}, not a list; {_FORM}.")
    if not value:
        raise UsageError(f"The schedule is empty; {_FORM}.")
    ranges = sorted((_entry(entry) for entry in value), key=lambda entry: entry[0])
    _check_order(ranges)
    return tuple(ranges)


def schedule_lookup(schedule: BatchSchedule, max_k: int, max_num_seqs: int) -> list[int]:
    """K by batch size: entry b is the K that a step with b requests uses, for b in 1..max_num_seqs; entry 0 is unused.

    A gap carries the K before it on, the last K goes on to `max_num_seqs`, and every K is capped at `max_k`
    (`num_speculative_tokens`). "Batch" is the number of requests scheduled in one step, prefills included.
    """
    if max_num_seqs < 1:
        raise UsageError(f"max_num_seqs is {max_num_seqs}; it must be 1 or more.")
    if max_k < 1:
        raise UsageError(f"num_speculative_tokens is {max_k}; it must be 1 or more.")
    checked = parse_schedule(schedule)
    lookup = [0] * (max_num_seqs + 1)
    for index, (first, _, k) in enumerate(checked):
        # Up to the next range's start: that is where a gap's carried K ends.
        end = checked[index + 1][0] if index + 1 < len(checked) else max_num_seqs + 1
        for batch in range(first, min(end, max_num_seqs + 1)):
            lookup[batch] = min(max_k, k)
    return lookup


def _entry(entry: object) -> tuple[int, int, int]:
    if not isinstance(entry, list | tuple) or len(entry) != 3:
        raise UsageError(f"The schedule's entry {short(entry)} is not three numbers; {_FORM}.")
    first, last, k = (_whole(part, entry) for part in entry)
    if first < 1 or last < 1:
        raise UsageError(f"The schedule's range {first} to {last} is not positive; batch sizes start at 1.")
    if first > last:
        raise UsageError(f"The schedule's range {first} to {last} ends before it starts; swap the two.")
    if k < 0:
        raise UsageError(f"The schedule's K {k} for {first} to {last} is negative; 0 switches speculation off.")
    return first, last, k


def _whole(part: object, entry: Sequence[object]) -> int:
    # vLLM takes "4" and 4.0 for 4 (its pydantic field converts both), but not 4.5, True or text.
    text = isinstance(part, str) and part.strip().lstrip("+-").isdecimal() and len(part) < _DIGITS
    number: int | None = None
    if text or (isinstance(part, float) and part.is_integer()):
        number = int(part)  # type: ignore[call-overload]  # text of digits, or a float
    elif isinstance(part, int) and not isinstance(part, bool):
        number = part
    if number is None or abs(number) >= 1 << 31:
        raise UsageError(f"The schedule's entry {short(entry)} holds {short(part)}, which is no whole number; {_FORM}.")
    return number


def _check_order(ranges: list[tuple[int, int, int]]) -> None:
    if ranges[0][0] != 1:
        raise UsageError(
            f"The schedule's first range starts at {ranges[0][0]}; it must start at 1, so that every batch has a K."
        )
    for (first, last, _), (next_first, next_last, _) in pairwise(ranges):
        if next_first <= last:
            raise UsageError(
                f"The schedule's ranges {first} to {last} and {next_first} to {next_last} overlap; "
                f"start the second at {last + 1} or later."
            )


def _kind(value: object) -> str:
    names = {dict: "a mapping", type(None): "missing", int: "a number", float: "a number", bool: "a truth value"}
    return names.get(type(value), f"a {type(value).__name__}")
