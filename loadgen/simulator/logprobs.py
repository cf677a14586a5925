"""The `logprobs` objects of both APIs, from the simulated model's own probabilities."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from loadgen.simulator.tokens import decode

_FLOOR = -9999.0
"""vLLM's stand-in for minus infinity, which JSON does not know."""
_json = msgspec.json.encode


class LogprobSource(Protocol):
    """The probabilities of one answer."""

    def top_logprobs(self, position: int, count: int) -> list[tuple[int, float]]:
        """The `count` likeliest (token, log probability) at an output position, best first."""

    def logprob(self, position: int, token: int) -> float:
        """The log probability of a token there; -inf for one that the model never says."""


def _text(token: int, as_id: bool = False) -> str:
    """The token's text, or its id in vLLM's spelling (`return_tokens_as_token_ids`)."""
    return f"token_id:{token}" if as_id else decode([token], skip_special=False)


def _rows(
    source: LogprobSource, ids: Sequence[int], position: int, top: int
) -> Iterator[tuple[int, float, list[tuple[int, float]]]]:
    """(token, its log probability, the likeliest ones) for each token; `position` is the first one's."""
    for at, token in enumerate(ids, position):
        yield token, max(source.logprob(at, token), _FLOOR), source.top_logprobs(at, top) if top else []


def completion_logprobs(
    source: LogprobSource, ids: Sequence[int], position: int, top: int, offset: int, *, as_ids: bool = False
) -> tuple[bytes, int]:
    """The object of /v1/completions as JSON, and the text offset after these tokens.

    `top_logprobs` holds the chosen token and the `top` likeliest ones, which mostly include it.
    """
    offsets: list[int] = []
    tokens: list[str] = []
    values: list[float] = []
    tops: list[dict[str, float]] = []
    for token, value, likeliest in _rows(source, ids, position, top):
        name = _text(token, as_ids)
        offsets.append(offset)
        offset += len(_text(token))
        tokens.append(name)
        values.append(value)
        tops.append({name: value, **{_text(other, as_ids): at for other, at in likeliest}})
    body = {"text_offset": offsets, "token_logprobs": values, "tokens": tokens, "top_logprobs": tops}
    return _json(body), offset


def chat_logprobs(source: LogprobSource, ids: Sequence[int], position: int, top: int, *, as_ids: bool = False) -> bytes:
    """The object of /v1/chat/completions as JSON."""

    def entry(token: int, value: float) -> dict[str, object]:
        return {"token": _text(token, as_ids), "logprob": value, "bytes": list(_text(token).encode())}

    content = [
        {**entry(token, value), "top_logprobs": [entry(other, at) for other, at in likeliest]}
        for token, value, likeliest in _rows(source, ids, position, top)
    ]
    return _json({"content": content})
