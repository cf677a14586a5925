"""What the simulated model says: a function of prompt, seed and position alone, the same for every profile."""

import math
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loadgen.simulator.compose import compose
from loadgen.simulator.intent import Intent, read_intent
from loadgen.simulator.lexicon import FIRST_TOKENS
from loadgen.simulator.stream import Floats, key_of, key_of_ids, uniform, uniforms
from loadgen.simulator.tokens import EOS, IM_START, decode, encode

ALTERNATIVES = 19
"""Tokens beside the likeliest one that have a probability of their own."""
NEAR_TIE_SHARE = 0.03
NEAR_TIE_GAP = 0.1
"""Nat: below this gap, another batch shape may turn the order of the first two (vllm#41758)."""

_RANK_STEP = 1.2
_HEADER = tuple(encode("<|im_start|>assistant\n"))


@dataclass
class Continuation:
    """One answer, from its first token on; `tokens` grows when more is asked for."""

    prompt: tuple[int, ...]
    key: int
    """Fixes gaps and alternatives by position; the same for all seeds."""
    tokens: list[int]
    likeliest: list[int]
    """The token of highest probability at each position up to the natural end; `tokens` itself at temperature 0."""
    natural_length: int
    """Tokens up to the natural end, EOS included."""
    offset: int = 0
    """Position of `tokens[0]` in the whole answer: the prompt may hold a part of it already."""
    temperature: float = 0.0
    seed: int | None = None
    tables: dict[Any, Any] = field(default_factory=dict)
    """Match arrays of lookups on this text, by their parameters: a step then costs O(1)."""

    def ensure(self, count: int) -> None:
        """`tokens` has at least `count` entries: past its end (`ignore_eos`) the answer falls into a loop."""
        if len(self.tokens) >= count:
            return
        body = [t for t in self.tokens[: self.natural_length] if t != EOS] or [FIRST_TOKENS[0]]
        period = body[-(12 + int(28 * uniform(key_of(self.key, "loop")))) :]
        at = len(self.tokens) - self.natural_length
        while len(self.tokens) < count + len(period):
            self.tokens.append(period[at % len(period)])
            at += 1

    def gap(self, position: int) -> float:
        """Nat between the likeliest token and the next one at an output position."""
        return float(_gaps(self.key, 1, self.offset + position)[0])

    def is_near_tie(self, position: int) -> bool:
        """True where another batch shape may choose `alternative(position)`."""
        return self.gap(position) < NEAR_TIE_GAP and self.top_token(position) != EOS

    def top_token(self, position: int) -> int:
        """The likeliest token at an output position."""
        if position < len(self.likeliest):
            return self.likeliest[position]
        self.ensure(position + 1)
        return self.tokens[position]

    def alternative(self, position: int, rank: int = 1) -> int:
        """The token of rank 1 to `ALTERNATIVES` behind the likeliest one."""
        return _alternative(self.key, self.offset + position, rank, self.top_token(position))

    def top_logprobs(self, position: int, count: int) -> list[tuple[int, float]]:
        """The `count` likeliest (token, log-probability) at an output position, best first; at most 20.

        Raw log-probabilities, before temperature, as vLLM returns them by default.
        """
        gap = self.gap(position)
        logits = [0.0, *(-gap - _RANK_STEP * (rank - 1) for rank in range(1, ALTERNATIVES + 1))]
        norm = math.log(sum(math.exp(logit) for logit in logits))
        ranks = range(min(count, ALTERNATIVES + 1))
        return [
            (self.alternative(position, rank) if rank else self.top_token(position), logits[rank] - norm)
            for rank in ranks
        ]

    def logprob(self, position: int, token: int) -> float:
        """Log-probability of a token at an output position; -inf for one that the model never says there."""
        return next((lp for t, lp in self.top_logprobs(position, ALTERNATIVES + 1) if t == token), -math.inf)


class TextModel:
    """Answers by prompt, kept for the prompts that came last."""

    def __init__(self, kept: int = 4096) -> None:
        self._kept = kept
        self._cache: OrderedDict[tuple[Any, ...], Continuation] = OrderedDict()

    def continuation(
        self, prompt: tuple[int, ...], *, temperature: float = 0.0, seed: int | None = None
    ) -> Continuation:
        """The answer to a prompt. A prompt that holds the beginning of an answer is continued from there.

        At temperature 0 the seed plays no part.
        """
        cache_key = (prompt, temperature, seed) if temperature > 0 else (prompt,)
        found = self._cache.get(cache_key)
        if found is not None:
            self._cache.move_to_end(cache_key)
            return found
        made = _sampled(self.continuation(prompt), temperature, seed) if temperature > 0 else self._make(prompt)
        self._cache[cache_key] = made
        while len(self._cache) > self._kept:
            self._cache.popitem(last=False)
        return made

    def flipped(self, continuation: Continuation, position: int) -> Continuation:
        """The answer that follows when the second-likeliest token is taken at an output position."""
        head = continuation.tokens[:position]
        turned = (*continuation.prompt, *head, continuation.alternative(position))
        rest = self.continuation(turned, temperature=continuation.temperature, seed=continuation.seed)
        tokens = [*turned[len(continuation.prompt) :], *rest.tokens]
        return Continuation(
            prompt=continuation.prompt,
            key=continuation.key,
            tokens=tokens,
            likeliest=[*continuation.likeliest[: position + 1], *rest.likeliest],
            natural_length=position + 1 + rest.natural_length,
            offset=continuation.offset,
            temperature=continuation.temperature,
            seed=continuation.seed,
        )

    def _make(self, prompt: tuple[int, ...]) -> Continuation:
        start = _answer_start(prompt)
        question, begun = prompt[:start], prompt[start:]
        intent = read_intent(decode(question, skip_special=False))
        root = key_of_ids(question)
        answer = compose(intent, root)
        at = 0
        while at < len(begun):
            if at >= len(answer) or begun[at] != answer[at]:
                answer = _branch(intent, root, answer, at, begun[at])
            at += 1
        tokens = answer[len(begun) :] or [EOS]
        return Continuation(prompt, root, tokens, tokens, len(tokens), offset=len(begun))


def with_flips(model: TextModel, answer: Continuation, share: float, salt: str) -> Continuation:
    """The answer of an engine that takes the second token at a `share` of near ties; `salt` names the engine.

    Sampled answers stay as they are: rounding moves their probabilities by little, it does not settle their tokens.
    """
    if answer.temperature > 0:
        return answer
    at = 0
    while at < answer.natural_length:
        if answer.is_near_tie(at) and uniform(key_of(answer.key, "flip", salt, at)) < share:
            answer = model.flipped(answer, at)
        at += 1
    return answer


def _branch(intent: Intent, root: int, answer: list[int], at: int, token: int) -> list[int]:
    """The answer after `token` stands at position `at` instead of what the model preferred there."""
    other = compose(intent, key_of(root, "branch", at, token))
    head = (answer + [EOS] * at)[:at]
    return [*head, token, *(other[at + 1 :] or [EOS])]


def _answer_start(prompt: tuple[int, ...]) -> int:
    """Index behind the last assistant header; the prompt's length if it has none."""
    width = len(_HEADER)
    for at in range(len(prompt) - width, -1, -1):
        if prompt[at] == IM_START and prompt[at : at + width] == _HEADER:
            return at + width
    return len(prompt)


def _gaps(key: int, count: int, start: int) -> Floats:
    """Gaps in nat: a few near ties, else 0.7 to 6.7."""
    u = uniforms(key_of(key, "gap"), count, start)
    tie = NEAR_TIE_SHARE
    return np.where(u < tie, u / tie * NEAR_TIE_GAP, 0.7 + 6.0 * (u - tie) / (1.0 - tie))


def _alternative(key: int, place: int, rank: int, top: int) -> int:
    first = key_of(key, "alternative", place) % len(FIRST_TOKENS)
    token = FIRST_TOKENS[(first + rank) % len(FIRST_TOKENS)]
    return FIRST_TOKENS[(first + ALTERNATIVES + 1) % len(FIRST_TOKENS)] if token == top else token


def _sampled(base: Continuation, temperature: float, seed: int | None) -> Continuation:
    """The answer with tokens sampled at a temperature: position by position from the softmax of `top_logprobs`.

    A token that was sampled against the odds does not change what the model wants to say next.
    """
    length = base.natural_length
    ratio = math.exp(-_RANK_STEP / temperature)
    others = np.exp(-_gaps(base.key, length, base.offset) / temperature) * (1 - ratio**ALTERNATIVES) / (1 - ratio)
    chance = others / (1.0 + others)
    # The answer's own key stays out: one seed and position draw alike for every prompt only through this mix.
    draws = uniforms(key_of(base.key, "sample", seed if seed is not None else -1), length, base.offset)
    tokens = list(base.tokens)
    for at in np.flatnonzero(draws < chance).tolist():
        if tokens[at] == EOS:
            continue
        v = draws[at] / chance[at]
        rank = 1 + int(math.log1p(-v * (1 - ratio**ALTERNATIVES)) / math.log(ratio))
        tokens[at] = base.alternative(at, min(rank, ALTERNATIVES))
    return Continuation(
        base.prompt, base.key, tokens, base.tokens, length, base.offset, temperature=temperature, seed=seed
    )
