"""The workload protocol: an ordered prompt list that follows from a seed alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

Purpose = Literal["measure", "warmup", "probe"]
TokenCounter = Callable[[str], int]
"""Tokens in a text, by the server's `/tokenize` or an estimate of it."""


@dataclass(frozen=True)
class Message:
    """One chat message."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Sampling:
    """Sampling parameters; every one is sent with each request and recorded."""

    temperature: float = 0.0
    top_p: float = 1.0
    seed: int | None = 0
    ignore_eos: bool = False


@dataclass(frozen=True)
class Prompt:
    """One request's input. Exactly one of `messages`, `text` and `token_ids` is set."""

    prompt_id: str
    """Unique in a run and the same for all profiles: `code-edit/512/L8/r0/measure/17`."""
    max_tokens: int
    messages: tuple[Message, ...] | None = None
    text: str | None = None
    token_ids: tuple[int, ...] | None = None


@dataclass(frozen=True)
class PromptRequest:
    """Which prompts are wanted. Two equal requests give byte-identical prompts; unequal ones share no cache block."""

    seed: int
    level: int
    repeat: int
    count: int
    purpose: Purpose = "measure"
    session: int = 0
    input_tokens: int | None = None
    """Wanted prompt length; None takes the workload's own."""
    max_tokens: int | None = None
    """Cap of the output; None takes the workload's own."""


class Workload(Protocol):
    """A kind of prompts."""

    name: str
    description: str
    default_input_tokens: int
    default_max_tokens: int

    def prompts(self, request: PromptRequest, count_tokens: TokenCounter) -> tuple[Prompt, ...]:
        """`request.count` prompts in their order, unique from the first cache block after the chat template."""


def prompt_hash_input(prompt: Prompt) -> Mapping[str, object]:
    """What of a prompt a workload hash covers: everything that reaches the server."""
    return {
        "messages": [(m.role, m.content) for m in prompt.messages] if prompt.messages else None,
        "text": prompt.text,
        "token_ids": prompt.token_ids,
        "max_tokens": prompt.max_tokens,
    }
