"""Prompts without a source text: the answer has little in common with the prompt, so drafts from it seldom fit."""

import random
from collections.abc import Iterator

from loadgen.workloads.base import TokenCounter
from loadgen.workloads.corpus import fill, lines
from loadgen.workloads.fitting import Draft
from loadgen.workloads.randomness import seeded
from loadgen.workloads.text_workload import TextWorkload

OPENINGS = (
    "{code} is my ticket number.",
    "{code}: a request from {person}.",
    "{code}, asked in {town}.",
    "{code} (for the {team} team).",
    "{code}, the one for {month}.",
)


class OpenQuestion(TextWorkload):
    """Wishes about the answer until the prompt has its length, then the request."""

    requests_file: str
    wishes_file: str

    def draft(self, code: str, rng: random.Random, wanted: int, count_tokens: TokenCounter) -> Draft:
        """Ticket, as many wishes as fit, then the request.

        The request stands last: in front of its wishes, SmolLM2-135M often repeats the prompt instead of an answer.
        """
        opening = fill(rng.choice(OPENINGS).replace("{code}", code), rng)
        request = fill(rng.choice(lines(self.requests_file)), rng)
        seed = rng.random()
        return Draft(
            units=lambda: self._wishes(seeded(seed)),
            render=lambda wishes: " ".join((opening, *wishes, request)),
        )

    def _wishes(self, rng: random.Random) -> Iterator[str]:
        """Wishes, each once; then further requests with wishes of their own, without end."""
        wishes = list(lines(self.wishes_file))
        rng.shuffle(wishes)
        for wish in wishes:
            yield fill(wish, rng)
        while True:
            yield fill(rng.choice(lines(self.requests_file)), rng)
            yield fill(rng.choice(wishes), rng)


class Chat(OpenQuestion):
    """Open questions about the world."""

    name = "chat"
    description = "open questions: low n-gram overlap, the hard case for lookup drafts"
    default_input_tokens = 60
    min_input_tokens = 45
    requests_file = "questions.txt"
    wishes_file = "constraints.txt"


class Creative(OpenQuestion):
    """Stories and poems: the least predictable text of all."""

    name = "creative"
    description = "stories, letters and poems: the lowest n-gram overlap of all"
    default_input_tokens = 70
    min_input_tokens = 45
    requests_file = "stories.txt"
    wishes_file = "story_wishes.txt"
