"""Faults of speculative decoding on purpose: servers that say what their model would not have said.

Each is a way in which a rejection sampler can be wrong; `loadgen lossless` must find them. Plain bodies and counters
stay as they are: nothing but the tokens tells.
"""

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from loadgen.errors import UsageError
from loadgen.simulator.acceptance import drawn_table
from loadgen.simulator.config import NGRAM_METHODS, EngineConfig
from loadgen.simulator.lookup import draft_starts
from loadgen.simulator.stream import key_of, uniform
from loadgen.simulator.text import ALTERNATIVES, Continuation, TextModel
from loadgen.simulator.tokens import EOS

KINDS = {
    "bonus-shift": "the token after a fully accepted draft comes from the position before (in a share N of cases, 1)",
    "accept-wrong": "a draft token that does not match is accepted with probability N (0.1)",
    "draft-temperature": "at temperatures above 0, drafted positions are sampled at temperature N (0.3)",
    "no-residual": "at temperatures above 0, a rejected n-gram draft is redrawn from the whole distribution",
}
_DEFAULTS = {"bonus-shift": 1.0, "accept-wrong": 0.1, "draft-temperature": 0.3, "no-residual": 1.0}


@dataclass(frozen=True)
class Bug:
    """One planted bug and its number."""

    kind: str
    amount: float

    @classmethod
    def parse(cls, text: str) -> "Bug":
        """`NAME` or `NAME:NUMBER`; UsageError names the known ones."""
        kind, _, amount = text.partition(":")
        if kind not in KINDS:
            listed = "; ".join(f"{name} ({words})" for name, words in KINDS.items())
            raise UsageError(f"There is no bug {kind!r}; choose one of: {listed}.")
        try:
            number = float(amount) if amount else _DEFAULTS[kind]
        except ValueError:
            raise UsageError(f"The number in --bug {text} is no number; write for example {kind}:0.5.") from None
        if not 0 < number <= 2 or (kind != "draft-temperature" and number > 1):
            raise UsageError(f"--bug {text} is out of range; give a share up to 1, or a temperature up to 2.")
        return cls(kind, number)


@dataclass(frozen=True)
class _Draft:
    """What stands to be verified in one step."""

    at: int
    """Output position of its first token."""
    length: int
    right: int
    wrong: int | None
    """The first token that does not match; None if all match."""


def with_bug(model: TextModel, answer: Continuation, config: EngineConfig, bug: Bug, until: int) -> Continuation:
    """The answer that a server with this bug gives, up to `until` tokens: step by step as it decodes, each wrong token
    changing what follows. Not for suffix decoding: its drafts depend on other requests.
    """
    if config.method == "none":
        return answer
    at = 1  # the first token comes from the prefill
    answer.ensure(until + config.k + 1)
    while at < min(until, answer.natural_length):
        draft = _draft(answer, config, at)
        if draft.length:
            answer = _strike(model, answer, draft, bug)
            answer.ensure(until + config.k + 1)
            draft = _draft(answer, config, at)
        at += 1 + draft.right
    return answer


def _draft(answer: Continuation, config: EngineConfig, at: int) -> _Draft:
    if config.method not in NGRAM_METHODS:
        right = drawn_table(answer, config, until=at).accepted[at]
        wrong = answer.alternative(at + right, 2) if right < config.k else None
        return _Draft(at, config.k, right, wrong)
    text = np.array([*answer.prompt, *answer.tokens[:at]], dtype=np.int64)
    begin = int(draft_starts(text, config.lookup_min, config.lookup_max)[text.size])
    if begin < 0:
        return _Draft(at, 0, 0, None)
    tokens = text[begin : begin + config.k].tolist()
    right = 0
    while right < len(tokens) and tokens[right] == answer.tokens[at + right]:
        right += 1
    return _Draft(at, len(tokens), right, tokens[right] if right < len(tokens) else None)


def _strike(model: TextModel, answer: Continuation, draft: _Draft, bug: Bug) -> Continuation:
    """The answer after the bug had its chance at this draft."""
    after = draft.at + draft.right
    if bug.kind == "accept-wrong" and draft.wrong is not None and _drawn(answer, bug, after) < bug.amount:
        return _replaced(model, answer, after, draft.wrong)
    if bug.kind == "bonus-shift" and draft.wrong is None and _drawn(answer, bug, after) < bug.amount:
        return _replaced(model, answer, after, answer.tokens[after - 1])
    if answer.temperature <= 0:
        return answer
    if bug.kind == "no-residual" and draft.wrong is not None:
        return _replaced(model, answer, after, _sample(answer, after, answer.temperature, _drawn(answer, bug, after)))
    if bug.kind == "draft-temperature":
        for at in range(draft.at, min(draft.at + draft.length, answer.natural_length)):
            token = _sample(answer, at, bug.amount, _drawn(answer, bug, at))
            answer = _replaced(model, answer, at, token)
    return answer


def _drawn(answer: Continuation, bug: Bug, at: int) -> float:
    seed = answer.seed if answer.temperature > 0 and answer.seed is not None else 0
    return uniform(key_of(answer.key, "bug", bug.kind, seed, answer.offset + at))


def _sample(answer: Continuation, at: int, temperature: float, u: float) -> int:
    """The token at an output position for a uniform number, at this temperature."""
    if answer.top_token(at) == EOS:
        return EOS  # as in the text model: an end is never sampled away
    ranked = answer.top_logprobs(at, ALTERNATIVES + 1)
    weights = [math.exp(logprob / temperature) for _, logprob in ranked]
    left = u * sum(weights)
    for (token, _), weight in zip(ranked, weights, strict=True):
        left -= weight
        if left < 0:
            return token
    return ranked[0][0]


def _replaced(model: TextModel, answer: Continuation, at: int, token: int) -> Continuation:
    """The answer with another token at a position. Greedy answers go on from it; sampled ones keep what the model
    wants to say next, as the text model does.
    """
    if at >= answer.natural_length or answer.tokens[at] == token:
        return answer
    if answer.temperature > 0:
        tokens = [*answer.tokens[:at], token, *answer.tokens[at + 1 :]]
        return dataclasses.replace(answer, tokens=tokens, tables={})
    head = (*answer.prompt, *answer.tokens[:at], token)
    rest = model.continuation(head)
    return Continuation(
        prompt=answer.prompt,
        key=answer.key,
        tokens=[*head[len(answer.prompt) :], *rest.tokens[: rest.natural_length]],
        likeliest=[*answer.likeliest[: at + 1], *rest.likeliest],
        natural_length=at + 1 + rest.natural_length,
        offset=answer.offset,
    )
