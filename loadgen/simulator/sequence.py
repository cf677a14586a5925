"""One request inside the engine core, and what proposes its drafts."""

from typing import Protocol

from loadgen.simulator.acceptance import drawn_table
from loadgen.simulator.config import MODEL_DRAFTS, NGRAM_METHODS, EngineConfig
from loadgen.simulator.kv import Block
from loadgen.simulator.lookup import draft_table
from loadgen.simulator.model import SimRequest
from loadgen.simulator.suffix import SuffixIndex, SuffixProposer
from loadgen.simulator.text import Continuation


class Sequence:
    """A request with its answer, its progress and its blocks. The core changes it in place: it is the hot path."""

    __slots__ = (
        "accepted",
        "answer",
        "cached",
        "draft",
        "end",
        "finish_reason",
        "held",
        "left",
        "lengths",
        "out",
        "owned",
        "preempted",
        "prompt_length",
        "request",
        "right",
    )

    def __init__(self, request: SimRequest, answer: Continuation, max_model_len: int) -> None:
        self.request = request
        self.answer = answer
        self.prompt_length = len(request.prompt_token_ids)
        limit = min(request.max_tokens, max_model_len - self.prompt_length)
        stops = not request.ignore_eos and answer.natural_length <= limit
        self.end = answer.natural_length if stops else limit
        """Output tokens at which it ends."""
        self.finish_reason = "stop" if stops else "length"
        answer.ensure(self.end)
        self.out = 0
        """Output tokens so far."""
        self.left = self.prompt_length
        """Tokens still to be computed before the next one can be sampled; 0 while decoding."""
        self.draft = 0
        """Draft tokens to be verified in its next step."""
        self.right = 0
        """How many of them are what the model says."""
        self.held: list[Block] = []
        self.owned = 0
        self.cached = 0
        self.preempted = False
        self.lengths: list[int] = []
        self.accepted: list[int] = []

    def tokens_so_far(self) -> tuple[int, ...]:
        """Prompt and output tokens that have their KV or will get it at readmission."""
        return (*self.request.prompt_token_ids, *self.answer.tokens[: self.out])


class Drafter(Protocol):
    """Proposes drafts."""

    def begin(self, sequence: Sequence) -> None:
        """A request enters the engine."""

    def propose(self, sequence: Sequence, most: int) -> None:
        """Sets `draft` (at most `most`) and `right` from what stands of the answer now."""

    def end(self, sequence: Sequence) -> None:
        """A request has ended."""


class TableDrafter:
    """n-gram lookup and model drafts: worked out per text beforehand, so that a step costs O(1)."""

    def __init__(self, config: EngineConfig, *, per_prompt: bool) -> None:
        self._config = config
        self._per_prompt = per_prompt

    def begin(self, sequence: Sequence) -> None:
        """Looks the table up, or makes it."""
        config = self._config
        if config.method in NGRAM_METHODS:
            table = draft_table(sequence.answer, config.lookup_min, config.lookup_max, config.k, sequence.end)
        else:
            table = drawn_table(sequence.answer, config, per_prompt=self._per_prompt, until=sequence.end)
        sequence.lengths, sequence.accepted = table.length, table.accepted

    def propose(self, sequence: Sequence, most: int) -> None:
        """From the table."""
        at = sequence.out
        length = sequence.lengths[at]
        sequence.draft = length if length < most else most
        right = sequence.accepted[at]
        sequence.right = right if right < most else most

    def end(self, sequence: Sequence) -> None:
        """Nothing is learned."""


class SuffixDrafter:
    """Suffix decoding: drafts depend on what was answered before."""

    def __init__(self, config: EngineConfig) -> None:
        self._proposer = SuffixProposer(
            factor=config.suffix_max_spec_factor,
            min_prob=config.suffix_min_token_prob,
            depth=config.suffix_max_tree_depth,
            kept=config.suffix_max_cached_requests,
        )

    def begin(self, sequence: Sequence) -> None:
        """Indexes prompt and answer; only what stands already is ever looked at."""
        answer = sequence.answer
        index = self._index(answer)
        missing = sequence.prompt_length + sequence.end - len(index.text)
        if missing > 0:
            at = len(index.text) - sequence.prompt_length
            index.extend(answer.tokens[at : at + missing])

    def propose(self, sequence: Sequence, most: int) -> None:
        """From this request's own text and earlier responses."""
        answer, out = sequence.answer, sequence.out
        draft = self._proposer.propose(self._index(answer), sequence.prompt_length + out, most)
        answer.ensure(out + len(draft))
        right = 0
        while right < len(draft) and draft[right] == answer.tokens[out + right]:
            right += 1
        sequence.draft, sequence.right = len(draft), right

    def end(self, sequence: Sequence) -> None:
        """Learns the response."""
        self._proposer.learn(sequence.answer.tokens[: sequence.out])

    @staticmethod
    def _index(answer: Continuation) -> SuffixIndex:
        index: SuffixIndex | None = answer.tables.get("suffix")
        if index is None:
            index = SuffixIndex()
            index.extend(answer.prompt)
            answer.tables["suffix"] = index
        return index


def drafter_for(config: EngineConfig, *, per_prompt: bool) -> Drafter | None:
    """The drafter of a configuration; None without speculation. ValueError for a method that is not simulated."""
    if config.method == "none":
        return None
    if config.method == "suffix":
        return SuffixDrafter(config)
    if config.method in NGRAM_METHODS or config.method in MODEL_DRAFTS:
        return TableDrafter(config, per_prompt=per_prompt)
    raise ValueError(f"the simulator has no drafter for method {config.method}; use ngram, suffix or a model method")
