"""The tokens of an answer, up to its natural end, from an intent and a key alone."""

import math
from collections.abc import Iterator

import numpy as np

from loadgen.simulator.intent import Behaviour, Intent
from loadgen.simulator.lexicon import COMMA, PARAGRAPH, SENTENCE_END, WORD_TOKENS, word_indices
from loadgen.simulator.stream import key_of, uniforms
from loadgen.simulator.tokens import EOS, encode

_TOPIC_WORDS = 10
_FENCE_OPEN = tuple(encode("```\n"))
_FENCE_CLOSE = tuple(encode("\n```"))
_LENGTH_SIGMA = 0.5
_RUN_SIGMA = 0.25
_LONGEST_PART = 2000


def compose(intent: Intent, key: int) -> list[int]:
    """Token ids of the whole answer, EOS last."""
    source = encode(intent.source)
    out: list[int] = []
    for number, part in enumerate(intent.parts):
        part_key = key_of(key, number)
        if part.whole:
            out += _FENCE_OPEN if intent.fenced else ()
            out += _walk_through(part, source, part_key)
            out += _FENCE_CLOSE if intent.fenced else ()
        elif part.copy_run and source:
            out += _pick_from(part, source, part_key)
        else:
            out += novel(key_of(part_key, "novel"), _length(part, part_key))
    out.append(EOS)
    return out


def novel(key: int, count: int) -> list[int]:
    """`count` tokens of sentences that are copied from nowhere."""
    draws = uniforms(key_of(key, "words"), 3 * count)
    words = word_indices(draws[:count], draws[count : 2 * count], uniforms(key_of(key, "topic"), _TOPIC_WORDS))
    out: list[int] = []
    ending = 8.0
    for at, word in enumerate(words):
        out += WORD_TOKENS[word]
        if len(out) >= count:
            break
        if at >= ending:
            out += PARAGRAPH if draws[2 * count + at] > 0.8 else SENTENCE_END
            ending = at + 7 + 12 * float(draws[2 * count + at])
        elif draws[2 * count + at] < 0.06:
            out += COMMA
    return out[:count]


def _walk_through(part: Behaviour, source: list[int], key: int) -> list[int]:
    """The source from its start to its end, with small changes between runs."""
    out: list[int] = []
    draws = _draws(key_of(key, "walk"))
    mean = part.copy_run * _spread(key, _RUN_SIGMA)
    fresh = _Fresh(key)
    at = 0
    while at < len(source):
        run = _geometric(next(draws), mean)
        out += source[at : at + run]
        at += run
        if at >= len(source):
            break
        out += fresh.take(_geometric(next(draws), part.gap))
        at += int(3 * next(draws))  # a change replaces, shortens or inserts
    return out


def _pick_from(part: Behaviour, source: list[int], key: int) -> list[int]:
    """Own words with runs of the source between them, taken mostly in the source's order."""
    out: list[int] = []
    draws = _draws(key_of(key, "pick"))
    mean = part.copy_run * _spread(key, _RUN_SIGMA)
    fresh = _Fresh(key)
    length = _length(part, key)
    at = int(next(draws) * len(source) * 0.3)
    while len(out) < length:
        out += fresh.take(_geometric(next(draws), part.gap))
        run = _geometric(next(draws), mean)
        out += source[at : at + run]
        at = (at + run + int(next(draws) * 60)) % len(source)
    return out[:length]


class _Fresh:
    """New tokens for the gaps of one answer."""

    def __init__(self, key: int) -> None:
        self._tokens = novel(key_of(key, "fresh"), 64)
        self._key, self._at, self._round = key, 0, 0

    def take(self, count: int) -> list[int]:
        """The next `count` new tokens."""
        while self._at + count > len(self._tokens):
            self._round += 1
            self._tokens += novel(key_of(self._key, "fresh", self._round), 64)
        self._at += count
        return self._tokens[self._at - count : self._at]


def _draws(key: int) -> Iterator[float]:
    start = 0
    while True:
        yield from uniforms(key, 256, start).tolist()
        start += 256


def _geometric(u: float, mean: float) -> int:
    """A run length of at least 1 with the given mean (geometric: every token may be the last)."""
    if mean <= 1.0:
        return 1
    return 1 + int(math.log1p(-u) / math.log1p(-1.0 / mean))


def _normal(key: int) -> float:
    """A standard normal number (Box and Muller 1958)."""
    u, v = (float(x) for x in uniforms(key, 2))
    return math.sqrt(-2.0 * math.log1p(-u)) * math.cos(2.0 * math.pi * v)


def _spread(key: int, sigma: float) -> float:
    """A factor around 1 that belongs to one prompt (log-normal with mean 1)."""
    return math.exp(sigma * _normal(key_of(key, "spread")) - sigma**2 / 2)


def _length(part: Behaviour, key: int) -> int:
    drawn = part.length * _spread(key_of(key, "length"), _LENGTH_SIGMA)
    return int(np.clip(drawn, 8, _LONGEST_PART))
