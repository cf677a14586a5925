"""Random tokens: only for comparing raw speed with tools that send them."""

from loadgen.workloads.base import Prompt, PromptRequest, TokenCounter
from loadgen.workloads.randomness import seeded
from loadgen.workloads.text_workload import prompt_id, request_key

FIRST_ID, LAST_ID = 1000, 29999
"""Ids that any vocabulary of today has, and that are no control tokens."""


class RandomTokens:
    """Token ids drawn evenly: exact in length, without any meaning."""

    name = "random"
    description = "random token ids, only on request: acceptance on them says nothing about real text"
    default_input_tokens = 512
    min_input_tokens = 1
    default_max_tokens = 128
    warnings = (
        "random tokens have no structure to follow, so acceptance on them means nothing; take a natural workload",
    )

    def prompts(self, request: PromptRequest, count_tokens: TokenCounter) -> tuple[Prompt, ...]:
        """`request.count` prompts of exactly the wanted number of ids."""
        return tuple(self.prompt_at(request, index, count_tokens) for index in range(request.count))

    def prompt_at(self, request: PromptRequest, index: int, count_tokens: TokenCounter) -> Prompt:
        """The prompt with this index; ids need no counting."""
        wanted = request.input_tokens or self.default_input_tokens
        draw = seeded(*request_key(request, self.name, index))
        return Prompt(
            prompt_id=prompt_id(request, self.name, wanted, index),
            max_tokens=request.max_tokens or self.default_max_tokens,
            token_ids=tuple(draw.randint(FIRST_ID, LAST_ID) for _ in range(wanted)),
        )
