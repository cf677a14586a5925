"""Suffix decoding: drafts from what followed the same tokens before, here and in earlier responses.

After ArcticInference (arXiv 2411.04975): of every suffix of the context the most frequent continuation is followed
while its estimated probability stays at `min_token_prob` or above, at most `max_spec_factor` times the matched length;
the candidate with the largest sum of probabilities wins. Where ArcticInference counts all occurrences in a suffix
tree, this looks at the latest `_SEEN` of them, which bounds memory and changes estimates only for very common tokens.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

_SEEN = 48
_WIDTHS = (4, 2, 1)


@dataclass(frozen=True)
class Draft:
    """A proposed continuation and the sum of its estimated probabilities."""

    tokens: tuple[int, ...] = ()
    score: float = 0.0


class SuffixIndex:
    """Where short token runs end in a growing text."""

    def __init__(self) -> None:
        self.text: list[int] = []
        self._ends: dict[tuple[int, ...], list[int]] = {}

    def extend(self, tokens: Sequence[int]) -> None:
        """The text goes on with `tokens`."""
        at = len(self.text)
        self.text.extend(tokens)
        text, ends = self.text, self._ends
        for end in range(at + 1, len(text) + 1):
            for width in _WIDTHS:
                if end >= width:
                    ends.setdefault(tuple(text[end - width : end]), []).append(end)

    def propose(
        self, context: Sequence[int], upto: int, *, most: int, factor: float, min_prob: float, depth: int
    ) -> Draft:
        """The best draft of at most `most` tokens after `context`, from the first `upto` tokens of this text."""
        matches = self._matches(context, upto, depth)
        best = Draft()
        for length in sorted({length for _, length in matches}, reverse=True):
            room = min(most, int(length * factor + 1e-6))
            if room > 0:
                ends = [end for end, matched in matches if matched >= length]
                candidate = self._follow(ends, upto, room, min_prob)
                best = candidate if candidate.score > best.score else best
        return best

    def _matches(self, context: Sequence[int], upto: int, depth: int) -> list[tuple[int, int]]:
        """(end, matched length) of earlier places whose last tokens equal the context's."""
        found: dict[int, int] = {}
        for width in _WIDTHS:
            if width > len(context):
                continue
            ends = self._ends.get(tuple(context[-width:]), [])
            # An end at `upto` is the context itself, or has nothing after it.
            last = bisect_left(ends, upto)
            for end in ends[max(0, last - _SEEN) : last]:
                if end not in found:
                    found[end] = self._matched(context, end, width, depth)
        return list(found.items())

    def _matched(self, context: Sequence[int], end: int, width: int, depth: int) -> int:
        longest = min(end, len(context), depth)
        length = width
        while length < longest and self.text[end - length - 1] == context[-length - 1]:
            length += 1
        return length

    def _follow(self, ends: list[int], upto: int, room: int, min_prob: float) -> Draft:
        """The most frequent path from these places; its probability is the product of the shares along it."""
        tokens: list[int] = []
        probability, score = 1.0, 0.0
        while len(tokens) < room:
            at = len(tokens)
            following: dict[int, list[int]] = {}
            for end in ends:
                if end + at < upto:
                    following.setdefault(self.text[end + at], []).append(end)
            if not following:
                break
            token = max(following, key=lambda t: len(following[t]))
            probability *= len(following[token]) / len(ends)
            if probability < min_prob:
                break
            tokens.append(token)
            score += probability
            ends = following[token]
        return Draft(tuple(tokens), score)


class SuffixProposer:
    """Drafts for all requests of one engine; it learns from every response that ended."""

    def __init__(self, *, factor: float, min_prob: float, depth: int, kept: int) -> None:
        self._factor, self._min_prob, self._depth, self._kept = factor, min_prob, depth, kept
        self._responses: list[tuple[int, ...]] = []
        self._global = SuffixIndex()

    def propose(self, local: SuffixIndex, upto: int, most: int) -> tuple[int, ...]:
        """At most `most` tokens after the first `upto` tokens of `local` (a request's prompt and answer)."""
        if most <= 0:
            return ()
        context = local.text[max(0, upto - self._depth) : upto]
        own = self._best(local, context, upto, most)
        earlier = self._best(self._global, context, len(self._global.text), most)
        return (own if own.score >= earlier.score else earlier).tokens

    def learn(self, response: Sequence[int]) -> None:
        """A response has ended; the oldest half is forgotten when `kept` are there."""
        self._responses.append(tuple(response))
        if len(self._responses) > self._kept:
            self._responses = self._responses[len(self._responses) // 2 :]
            self._global = SuffixIndex()
            for kept in self._responses:
                self._global.extend((*kept, -1))
            return
        # -1 stands in no response, so no match crosses from one to the next.
        self._global.extend((*response, -1))

    def _best(self, index: SuffixIndex, context: Sequence[int], upto: int, most: int) -> Draft:
        return index.propose(context, upto, most=most, factor=self._factor, min_prob=self._min_prob, depth=self._depth)
