"""What `loadgen lossless` sees and says, as plain facts."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Quality(StrEnum):
    """The verdict on one part, or on the whole."""

    SAME = "same quality"
    DIFFERS = "differs"
    NOT_TESTED = "not tested"


@dataclass(frozen=True)
class Divergence:
    """Where a greedy answer leaves the baseline's, both having the same tokens before."""

    prompt: str
    concurrency: int
    position: int
    """Output tokens before it."""
    wanted: int
    """The baseline's token id."""
    got: int
    """The other answer's token id; -1 if it ended."""
    gap: float | None = None
    """Nat between the baseline's likeliest token and `got` at this prefix; None: `got` is not among its top 20."""
    own_gap: float | None = None
    """The same, asked from the profile's own server at the same prefix, where no draft plays a part."""
    in_chunk: int = 0
    """Size of the streamed chunk it came in: above 1 it came with a draft. 0: not known."""


@dataclass(frozen=True)
class Arm:
    """Greedy answers to all prompts at one concurrency, compared with the baseline's at concurrency 1.

    After a divergence the answer is taken up again behind the baseline's token, so that a near tie early in an answer
    does not end the test.
    """

    concurrency: int
    prompts: int
    exact: int
    """Answers that equal the baseline's token for token, without being taken up."""
    tokens: int
    """Tokens compared at a common prefix."""
    first_divergences: tuple[int, ...]
    """Position of the first divergence of each answer that has one."""
    divergences: tuple[Divergence, ...]


@dataclass(frozen=True)
class Drafted:
    """What the profile's counters say of the tokens under test; None = the server has no such counter."""

    drafts: float | None
    draft_tokens: float | None
    accepted_tokens: float | None
    generated_tokens: float | None
    at_least: bool = False
    """True where counters of a part were lost (the test was killed): the rest is a lower bound."""

    @property
    def share(self) -> float | None:
        """Accepted draft tokens / generated tokens."""
        if self.accepted_tokens is None or not self.generated_tokens:
            return None
        return self.accepted_tokens / self.generated_tokens


@dataclass(frozen=True)
class Tolerance:
    """How large a gap two correct servers may show at a divergence."""

    kind: str
    """`float32`, `16-bit` or `quantised`."""
    nat: float
    source: str
    """`dtype` or `control`."""


@dataclass(frozen=True)
class Rate:
    """k of n with its exact 95 % interval."""

    count: int
    n: int
    ci95: tuple[float, float]


@dataclass(frozen=True)
class GreedyFinding:
    """The verdict at temperature 0."""

    quality: Quality
    reason: str
    """Why it is not tested, or a clause that says what differs; empty for the same quality."""
    tolerance: Tolerance
    hard: Rate
    """Prompts with at least one hard divergence."""
    control_hard: Rate
    exact: Rate
    """Answers equal to the baseline's; not the verdict (vllm#41758)."""
    control_exact: Rate
    soft_divergences: int
    median_first_divergence: float | None
    hard_divergences: tuple[Divergence, ...]
    drafted: Drafted
    wants_more: bool = False
    """True for exactly one hard prompt: another set of prompts settles it."""
    arms: tuple[Arm, ...] = ()
    """The profile's answers, by concurrency."""
    control: tuple[Arm, ...] = ()
    """The baseline's answers against its own first ones."""


@dataclass(frozen=True)
class Place:
    """The tokens that both servers sampled at one position after one prefix."""

    prefix: str
    position: int
    """1 is the request's first token, which never comes from a draft."""
    baseline: Mapping[int, int]
    """Token id → count; -1 stands for an answer that had ended."""
    other: Mapping[int, int]


@dataclass(frozen=True)
class PlaceFinding:
    """One place, tested."""

    prefix: str
    position: int
    n: tuple[int, int]
    tv: float
    """Total variation distance of the two samples: the share of tokens that would have to change."""
    tv_upper95: float
    p: float
    p_holm: float
    detectable_tv: float
    """The smallest distance that would have been called with 80 % power, in the direction that is hardest to see."""


@dataclass(frozen=True)
class SamplingFinding:
    """The verdict at one temperature above 0."""

    quality: Quality
    reason: str
    temperature: float
    samples: int
    """Per server and prefix."""
    margin: float
    alpha: float
    places: tuple[PlaceFinding, ...]
    control: tuple[PlaceFinding, ...]
    drafted: Drafted


@dataclass(frozen=True)
class LosslessFinding:
    """The whole verdict."""

    quality: Quality
    profile: str
    against: str
    greedy: GreedyFinding | None
    sampling: tuple[SamplingFinding, ...]
