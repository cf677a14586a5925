"""n-gram prompt lookup as vLLM does it, worked out for a whole text at once."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from loadgen.simulator.text import Continuation

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class DraftTable:
    """By number of output tokens that stand already: the draft made from prompt plus those, at the largest K.

    With a smaller K' the draft is its first K' tokens, so that min(length, K') are drafted and min(accepted, K')
    accepted.
    """

    length: list[int]
    accepted: list[int]


def draft_table(answer: Continuation, low: int, high: int, k: int, until: int | None = None) -> DraftTable:
    """The lookup's drafts and how many of them are right, for 0 … `until` output tokens (default: natural end).

    vLLM's `_find_longest_matched_ngram_and_propose_tokens` (v1/spec_decode/ngram_proposer.py): the longest suffix
    of `low` to `high` tokens that occurred before; of equally long ones the earliest; the draft is what followed
    it, cut at the end of the text so far.
    """
    count = answer.natural_length if until is None else until
    cache_key = ("ngram", low, high, k)
    found: DraftTable | None = answer.tables.get(cache_key)
    if found is None or len(found.length) <= count:
        found = _build(answer, low, high, k, count)
        answer.tables[cache_key] = found
    return found


def _build(answer: Continuation, low: int, high: int, k: int, count: int) -> DraftTable:
    # The text goes on past the end: vLLM verifies drafts there too and counts what it accepts.
    answer.ensure(count + k + 1)
    text = np.array([*answer.prompt, *answer.tokens[: count + k + 1]], dtype=np.int64)
    starts = len(answer.prompt) + np.arange(count + 1)
    begin = draft_starts(text, low, high)[starts]
    drafted = np.where(begin >= 0, np.minimum(k, starts - begin), 0)
    accepted = np.zeros(count + 1, dtype=np.int64)
    going = np.ones(count + 1, dtype=bool)
    for j in range(k):
        going &= (j < drafted) & (text[np.where(begin >= 0, begin, 0) + j] == text[starts + j])
        accepted += going
    return DraftTable(drafted.tolist(), accepted.tolist())


def draft_starts(text: Ints, low: int, high: int) -> Ints:
    """For every length t of the text so far (0 … len): index where the draft from text[:t] begins, -1 for none."""
    size = text.size
    out = np.full(size + 1, -1, dtype=np.int64)
    _, grams = np.unique(text, return_inverse=True)
    singles = grams.astype(np.int64)
    grams = singles
    for n in range(1, min(high, size - 1) + 1):
        if n > 1:
            pairs = grams[:-1] * (int(singles.max()) + 1) + singles[n - 1 :]
            _, grams = np.unique(pairs, return_inverse=True)
        if n < low:
            continue
        _, first, inverse = np.unique(grams, return_index=True, return_inverse=True)
        begin = np.arange(grams.size)
        earlier = first[inverse]
        ends = begin + n
        repeated = earlier < begin
        out[ends[repeated]] = earlier[repeated] + n
    return out
