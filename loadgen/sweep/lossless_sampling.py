"""The sampling part of the same-quality test: many short answers after few prefixes."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from loadgen.analysis.lossless_model import Place
from loadgen.sweep.lossless_client import Answer, Ask
from loadgen.sweep.lossless_greedy import Asking, Chunk

MOST_POSITIONS = 10
ENDED = -1
_SEEDS_APART = 1_000_003


@dataclass(frozen=True)
class Prefix:
    """A prompt with the beginning of an answer, behind which drafts were accepted."""

    name: str
    tokens: tuple[int, ...]


def choose_prefixes(chunks: Sequence[Chunk], count: int, temperature: float) -> tuple[Prefix, ...]:
    """The prefixes whose drafted tokens were the least certain, at most one per prompt.

    A draft comes from the second token of a request on, so the prefix ends one token before the chunk. Certain tokens
    would test nothing: they come out the same whatever the sampler does. Certainty is that of the baseline's own
    token at this temperature, taking the rest of the probability as one other token.
    """
    ranked = sorted(
        chunks, key=lambda chunk: (-_spread(chunk, temperature), chunk.reference.question.name, chunk.start)
    )
    chosen: dict[str, Prefix] = {}
    for chunk in ranked:
        name = chunk.reference.question.name
        if name not in chosen and len(chosen) < count:
            head = chunk.reference.answer.tokens[: chunk.start - 1]
            chosen[name] = Prefix(f"{name}+{len(head)}", (*chunk.reference.question.tokens, *head))
    return tuple(chosen.values())


async def sample(
    asking: Asking,
    prefixes: Sequence[Prefix],
    *,
    samples: int,
    tokens: int,
    temperature: float,
    concurrency: int,
    arm: int,
    seed: int | None,
) -> dict[str, list[Counter[int]]]:
    """Prefix name → for each position 1 … `tokens`, how often each token came; -1 for an answer that had ended.

    With a seed every answer has one of its own, and no two arms share one; None leaves the drawing to the server.
    """
    base = None if seed is None else (seed * 16 + arm) * _SEEDS_APART % 2**31
    asks = [
        Ask(
            prefix.tokens,
            tokens,
            temperature=temperature,
            seed=None if base is None else base + index * samples + number,
        )
        for index, prefix in enumerate(prefixes)
        for number in range(samples)
    ]
    answers = await asking.all("samples", asks, concurrency)
    return {
        prefix.name: _counts(answers[index * samples : (index + 1) * samples], tokens)
        for index, prefix in enumerate(prefixes)
    }


def places(baseline: dict[str, list[Counter[int]]], other: dict[str, list[Counter[int]]]) -> tuple[Place, ...]:
    """Both servers' counts side by side."""
    return tuple(
        Place(name, position, first, second)
        for name, counts in baseline.items()
        for position, (first, second) in enumerate(zip(counts, other[name], strict=True), 1)
    )


def positions(k: int) -> int:
    """Tokens of a sample: the first one, K drafted ones and the bonus, at most ten."""
    return min(k + 2, MOST_POSITIONS)


def _counts(answers: Sequence[Answer], tokens: int) -> list[Counter[int]]:
    padded = [(*answer.tokens[:tokens], *(ENDED,) * (tokens - len(answer.tokens))) for answer in answers]
    return [Counter(answer[position] for answer in padded) for position in range(tokens)]


def _spread(chunk: Chunk, temperature: float) -> float:
    """Sum of p (1 − p) over the chunk's tokens."""
    logprobs = chunk.reference.answer.chosen[chunk.start : chunk.start + chunk.size]
    return sum(p * (1 - p) for p in (_at_temperature(logprob, temperature) for logprob in logprobs))


def _at_temperature(logprob: float, temperature: float) -> float:
    p = math.exp(min(logprob, 0.0))
    own, rest = p ** (1 / temperature), (1 - p) ** (1 / temperature)
    return own / (own + rest) if own + rest > 0 else 1.0
