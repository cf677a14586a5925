"""Log probabilities for the `logprobs` fields. The simulator has none, so they are made up: fixed by token and
position, the chosen token first, the others falling behind it.
"""

import math
from collections.abc import Iterator, Sequence

import msgspec

from loadgen.simulator.stream import key_of, uniform
from loadgen.simulator.tokens import VOCAB_SIZE, decode

_ALTERNATIVES_BASE = 16
_json = msgspec.json.encode


def chosen_logprob(token: int, position: int) -> float:
    """The log probability of the generated token, between ln 0.6 and ln 1."""
    return math.log(0.6 + 0.4 * uniform(key_of(token, position)))


def alternatives(token: int, position: int, count: int) -> Iterator[tuple[int, float]]:
    """The `count` likeliest (token, log probability), the chosen one first, each further one with less of the rest."""
    if count < 1:
        return
    first = chosen_logprob(token, position)
    yield token, first
    left = max(1.0 - math.exp(first), 1e-6)
    for rank in range(1, count):
        # Single-byte tokens from `!` on: printable, and never the same twice.
        other = _ALTERNATIVES_BASE + 33 + (position + rank) % 90
        other = other if other != token else (VOCAB_SIZE - rank)
        left /= 3
        yield other, math.log(left)


def completion_logprobs(ids: Sequence[int], position: int, top: int, offset: int) -> tuple[bytes, int]:
    """The `logprobs` object of /v1/completions as JSON, and the text offset after these tokens."""
    offsets: list[int] = []
    tokens: list[str] = []
    values: list[float] = []
    tops: list[dict[str, float]] = []
    for at, token in enumerate(ids, position):
        text = decode([token], skip_special=False)
        offsets.append(offset)
        offset += len(text)
        tokens.append(text)
        values.append(chosen_logprob(token, at))
        likeliest = alternatives(token, at, max(top, 1))
        tops.append({decode([other], skip_special=False): value for other, value in likeliest})
    body = {"text_offset": offsets, "token_logprobs": values, "tokens": tokens, "top_logprobs": tops}
    return _json(body), offset


def chat_logprobs(ids: Sequence[int], position: int, top: int) -> bytes:
    """The `logprobs` object of /v1/chat/completions as JSON."""

    def entry(token: int, value: float) -> dict[str, object]:
        text = decode([token], skip_special=False)
        return {"token": text, "logprob": value, "bytes": list(text.encode())}

    content = [
        {
            **entry(token, chosen_logprob(token, at)),
            "top_logprobs": [entry(other, value) for other, value in alternatives(token, at, top)],
        }
        for at, token in enumerate(ids, position)
    ]
    return _json({"content": content})
