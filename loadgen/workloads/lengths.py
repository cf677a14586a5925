"""Token counts without a server, and lengths drawn per prompt."""

import math
import random
import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, Protocol

from loadgen.errors import UsageError
from loadgen.profiles.values import short
from loadgen.workloads.base import Prompt, PromptRequest, TokenCounter
from loadgen.workloads.randomness import seeded

MOST_TOKENS = 1_000_000
_SPEC = re.compile(r"(?:(constant|uniform|normal|lognormal):)?(\d+(?:\.\d+)?)(?:[-,](\d+(?:\.\d+)?))?")


def ratio_counter(chars_per_token: float) -> TokenCounter:
    """A counter that takes a token for so many characters: about 3.9 for English, 3.2 for code."""
    if chars_per_token <= 0:
        raise UsageError(f"{chars_per_token:g} characters per token make no sense; give a number above 0")

    def count(text: str) -> int:
        return math.ceil(len(text) / chars_per_token)

    return count


@dataclass(frozen=True)
class LengthDistribution:
    """Lengths in tokens, at least 1 each."""

    kind: Literal["constant", "uniform", "normal", "lognormal"]
    first: float
    """The value; the least; the mean; the median."""
    second: float = 0.0
    """Unused; the most; the standard deviation; the standard deviation of the logarithm."""

    def draw(self, rng: random.Random) -> int:
        """One length."""
        match self.kind:
            case "uniform":
                return rng.randint(round(self.first), round(self.second))
            case "normal":
                return max(1, round(rng.gauss(self.first, self.second)))
            case "lognormal":
                return max(1, round(rng.lognormvariate(math.log(self.first), self.second)))
            case _:
                return round(self.first)

    @property
    def sane(self) -> bool:
        """True if it means lengths that a context could have."""
        try:
            return max(self.first, self.mean) <= MOST_TOKENS and (
                self.kind == "lognormal" or self.second <= MOST_TOKENS
            )
        except OverflowError:
            return False

    @property
    def mean(self) -> float:
        """The expected length, the cut at 1 token left aside."""
        match self.kind:
            case "uniform":
                return (self.first + self.second) / 2
            case "lognormal":
                return self.first * math.exp(self.second**2 / 2)
            case _:
                return self.first


def parse_lengths(text: str) -> LengthDistribution:
    """The distribution of `300`, `constant:300`, `uniform:100-400`, `normal:300,50` or `lognormal:300,0.5` (median)."""
    match = _SPEC.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"{short(text)} tells no length; write 300, uniform:100-400, normal:300,50 or lognormal:300,0.5"
        )
    kind, first, second = match[1] or "constant", float(match[2]), match[3]
    if (kind == "constant") != (second is None):
        raise UsageError(f"{text!r} needs {'one number' if kind == 'constant' else 'two numbers'}; see uniform:100-400")
    found = LengthDistribution(kind, first, float(second or 0))  # type: ignore[arg-type]  # the pattern allows these only
    if not found.sane:
        raise UsageError(f"{short(text)} means lengths beyond {MOST_TOKENS} tokens; no context is that long")
    if first < 1 or (kind == "uniform" and found.second < first):
        raise UsageError(f"{text!r} is no range of lengths; start at 1 or more and end at or above the start")
    return found


class IndexedWorkload(Protocol):
    """A workload that can give one prompt by its index."""

    name: str
    description: str
    default_input_tokens: int
    default_max_tokens: int
    min_input_tokens: int

    def prompt_at(self, request: PromptRequest, index: int, count_tokens: TokenCounter) -> Prompt:
        """The prompt with this index."""


class DrawnLengths:
    """A workload whose input lengths, caps, or both are drawn per prompt: the same for every profile."""

    def __init__(
        self,
        inner: IndexedWorkload,
        inputs: LengthDistribution | None = None,
        outputs: LengthDistribution | None = None,
    ) -> None:
        self._inner, self._inputs, self._outputs = inner, inputs, outputs
        self.name = inner.name
        self.description = inner.description
        self.warnings: tuple[str, ...] = tuple(getattr(inner, "warnings", ()))
        self.default_input_tokens = round(inputs.mean) if inputs else inner.default_input_tokens
        self.default_max_tokens = round(outputs.mean) if outputs else inner.default_max_tokens

    def prompts(self, request: PromptRequest, count_tokens: TokenCounter) -> tuple[Prompt, ...]:
        """`request.count` prompts, each of its own length."""
        remembered = cache(count_tokens)
        return tuple(self.prompt_at(request, index, remembered) for index in range(request.count))

    def prompt_at(self, request: PromptRequest, index: int, count_tokens: TokenCounter) -> Prompt:
        """The prompt with this index; its lengths follow from the seed and the prompt's place, not from the profile."""
        place = (request.seed, request.purpose, request.level, request.repeat, request.session, index)
        wanted = request
        if self._inputs:
            wanted = replace(wanted, input_tokens=self._inputs.draw(seeded("input", self.name, *place)))
        if self._outputs:
            wanted = replace(wanted, max_tokens=self._outputs.draw(seeded("output", self.name, *place)))
        return self._inner.prompt_at(wanted, index, count_tokens)
