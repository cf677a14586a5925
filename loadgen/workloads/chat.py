"""Open questions: the answer has little in common with the prompt, so drafts from the prompt seldom fit."""

import random
from collections.abc import Iterator

from loadgen.workloads.base import TokenCounter
from loadgen.workloads.corpus import fill, lines
from loadgen.workloads.fitting import Draft
from loadgen.workloads.randomness import seeded
from loadgen.workloads.text_workload import TextWorkload

_OPENINGS = (
    "{code} is my ticket number.",
    "{code}: a question from {person}.",
    "{code}, asked in {town}.",
    "{code} (for the {team} team).",
    "{code}, question of the day in {month}.",
)


class Chat(TextWorkload):
    """Open questions with wishes about the answer."""

    name = "chat"
    description = "open questions: low n-gram overlap, the hard case for lookup drafts"
    default_input_tokens = 60

    def draft(self, code: str, rng: random.Random, wanted: int, count_tokens: TokenCounter) -> Draft:
        """Ticket, question, then as many wishes as fit."""
        opening = fill(rng.choice(_OPENINGS).replace("{code}", code), rng)
        question = fill(rng.choice(lines("questions.txt")), rng)
        seed = rng.random()
        return Draft(
            units=lambda: _wishes(seeded(seed)),
            render=lambda wishes: " ".join((opening, question, *wishes)),
        )


def _wishes(rng: random.Random) -> Iterator[str]:
    """Wishes about the answer, each once; then more questions to be answered as well, without end."""
    wishes = list(lines("constraints.txt"))
    rng.shuffle(wishes)
    for wish in wishes:
        yield fill(wish, rng)
    while True:
        yield fill(rng.choice(lines("questions.txt")), rng)
        yield fill(rng.choice(lines("constraints.txt")), rng)
