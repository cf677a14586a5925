"""A blend of workloads, as a server sees it that serves several teams."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from loadgen.workloads.base import Prompt, PromptRequest, TokenCounter
from loadgen.workloads.randomness import seeded
from loadgen.workloads.text_workload import TextWorkload, request_key


class Mixed:
    """Each prompt comes from one of its parts, drawn by weight from the seed; each keeps its part's own length."""

    name = "mixed"
    default_max_tokens = 128

    def __init__(self, parts: Sequence[tuple[TextWorkload, int]]) -> None:
        self._parts = tuple(parts)
        total = sum(weight for _, weight in parts)
        blend = ", ".join(f"{weight * 100 // total} % {part.name}" for part, weight in parts)
        self.description = f"a blend drawn by weight: {blend}"
        self.min_input_tokens = max(part.min_input_tokens for part, _ in parts)
        self.default_input_tokens = sum(part.default_input_tokens * weight for part, weight in parts) // total

    def prompts(self, request: PromptRequest, count_tokens: TokenCounter) -> tuple[Prompt, ...]:
        """`request.count` prompts; those of one part are not the ones that the part gives alone."""
        remembered = cache(count_tokens)
        return tuple(self.prompt_at(request, index, remembered) for index in range(request.count))

    def prompt_at(self, request: PromptRequest, index: int, count_tokens: TokenCounter) -> Prompt:
        """The prompt with this index; the blend's mean length stands for the parts' own lengths."""
        if request.input_tokens == self.default_input_tokens:
            request = replace(request, input_tokens=None)
        draw = seeded("part", *request_key(request, self.name, index))
        part = draw.choices([part for part, _ in self._parts], [weight for _, weight in self._parts])[0]
        return part.prompt_at(request, index, count_tokens, group=self.name)
