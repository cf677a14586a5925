"""What all built-in workloads share: one prompt by its index, cache-proofed and brought to its length."""

import random
from abc import ABC, abstractmethod
from functools import cache

from loadgen.errors import UsageError
from loadgen.workloads.base import Message, Prompt, PromptRequest, TokenCounter
from loadgen.workloads.fitting import Draft, Fitted, fit
from loadgen.workloads.randomness import code_of, seeded

_ATTEMPTS = 20


class TextWorkload(ABC):
    """A kind of prompts whose every prompt follows from (seed, purpose, level, repeat, session, index) alone."""

    name: str
    description: str
    default_input_tokens: int
    default_max_tokens: int = 128
    min_input_tokens: int
    """The shortest prompt that every draw can be brought to."""
    warnings: tuple[str, ...] = ()

    def prompts(self, request: PromptRequest, count_tokens: TokenCounter) -> tuple[Prompt, ...]:
        """`request.count` prompts in their order; a larger count keeps the earlier ones as they are."""
        remembered = cache(count_tokens)  # a counter may ask a server, and the same sources recur
        return tuple(self.prompt_at(request, index, remembered) for index in range(request.count))

    def prompt_at(
        self, request: PromptRequest, index: int, count_tokens: TokenCounter, group: str | None = None
    ) -> Prompt:
        """The prompt with this index; `group` is the name of a blend that it belongs to."""
        key = request_key(request, group or self.name, index)
        wanted = request.input_tokens or self.default_input_tokens
        text = self._fitted(key, wanted, count_tokens)
        return Prompt(
            prompt_id=prompt_id(request, group or self.name, wanted, index),
            max_tokens=request.max_tokens or self.default_max_tokens,
            messages=(Message("user", text),),
        )

    def _fitted(self, key: tuple[object, ...], wanted: int, count_tokens: TokenCounter) -> str:
        """The prompt's text; a draw whose fixed parts do not suit the length is drawn anew, a few times."""
        code = code_of(*key)
        best: Fitted | None = None
        for attempt in range(_ATTEMPTS):
            draft = self.draft(code, seeded(*key, attempt), wanted, count_tokens)
            found = fit(draft, wanted, count_tokens)
            if found.good:
                return found.text
            best = found if best is None else min(best, found, key=lambda fitted: fitted.miss)
        nearest = best.tokens if best else 0
        raise UsageError(
            f"workload {self.name} cannot make a prompt of {wanted} tokens within 5 %, the nearest has {nearest}; "
            f"ask for {self.min_input_tokens} or more"
        )

    @abstractmethod
    def draft(self, code: str, rng: random.Random, wanted: int, count_tokens: TokenCounter) -> Draft:
        """A text that begins with `code` and can grow to `wanted` tokens."""


def request_key(request: PromptRequest, name: str, index: int) -> tuple[object, ...]:
    """All that a prompt follows from. `count` is left out, so that a longer list begins like a shorter one."""
    return (
        name,
        request.seed,
        request.purpose,
        request.level,
        request.repeat,
        request.session,
        request.input_tokens,
        request.max_tokens,
        index,
    )


def prompt_id(request: PromptRequest, name: str, input_tokens: int, index: int) -> str:
    """Such as `code-edit/512/L8/r0/measure/17`, with the session in it from the second session on."""
    session = f"s{request.session}/" if request.session else ""
    return f"{name}/{input_tokens}/L{request.level}/r{request.repeat}/{session}{request.purpose}/{index}"
