"""What goes into the simulated engine and what comes out: plain facts, no clock."""

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class SimRequest:
    """One request as the engine core sees it."""

    request_id: str
    prompt_token_ids: tuple[int, ...]
    max_tokens: int
    temperature: float = 0.0
    seed: int | None = None
    ignore_eos: bool = False


@dataclass(frozen=True)
class StepOutput:
    """What one request got out of one engine step."""

    request_id: str
    new_token_ids: tuple[int, ...]
    finish_reason: str | None = None
    """`stop` or `length` on its last output."""
    first: bool = False
    """True for the request's first output."""
    drafted: int = 0
    accepted: int = 0
    cached_prompt_tokens: int = 0
    """Set on the first output: prompt tokens that came from the prefix cache."""


@dataclass(frozen=True)
class StepResult:
    """One engine step: how long it took in engine time, and its outputs."""

    duration_s: float
    outputs: tuple[StepOutput, ...]
    scheduled_requests: int
    scheduled_tokens: int
    """Prompt tokens computed plus tokens generated: what `vllm:iteration_tokens_total` observes."""
    prompt_tokens: int
    draft_tokens_k: int
    """The K that the schedule picked for the drafts of this step."""
    preempted: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    admitted: tuple[str, ...] = ()
    """Requests that left the waiting queue in this step."""
    extra: dict[str, float] = field(default_factory=dict)
    """Cost terms in seconds, for `--truth` and tests."""


@dataclass(frozen=True)
class LoadState:
    """The engine's gauges."""

    running: int
    waiting: int
    kv_cache_usage: float


class EngineCore(Protocol):
    """Continuous batching without a clock: time comes in as an argument, goes out as a duration."""

    def add(self, request: SimRequest, now_s: float) -> None:
        """The request waits from `now_s` on. ValueError if prompt + 1 exceeds max_model_len."""

    def abort(self, request_id: str) -> None:
        """The request is gone; unknown ids are ignored."""

    def step(self, now_s: float) -> StepResult | None:
        """The next step, begun at `now_s`; None if nothing waits or runs. State moves at once: its outputs are due at
        `now_s + duration_s`.
        """

    def state(self) -> LoadState:
        """Running, waiting, KV use, now."""
