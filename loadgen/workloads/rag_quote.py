"""Answering by quotation from given passages, as retrieval systems do: the answer is a copy of a part of the prompt."""

import random
from collections.abc import Sequence

from loadgen.workloads.base import TokenCounter
from loadgen.workloads.corpus import fill, passages
from loadgen.workloads.fitting import Draft
from loadgen.workloads.open_question import OPENINGS
from loadgen.workloads.passage_text import paragraphs, sentence_units, tagged, whole
from loadgen.workloads.randomness import seeded
from loadgen.workloads.text_workload import TextWorkload

_FILE = "passages.txt"
_SHORT_PROMPT = 200
_ASKS = (
    'What do the passages say about {title}? Quote the whole passage that begins with "{start}", word for word.',
    'Answer by quoting: repeat, word for word, the whole passage about {title}, which begins with "{start}".',
    'Quote the passage about {title} exactly as it stands, starting with "{start}" and going on to its last word.',
)


class RagQuote(TextWorkload):
    """One passage among others is to be quoted."""

    name = "rag-quote"
    description = "answer by quoting from the given passages: high n-gram overlap with a long prompt"
    default_input_tokens = 400
    min_input_tokens = 130

    def draft(self, code: str, rng: random.Random, wanted: int, count_tokens: TokenCounter) -> Draft:
        """Ticket, passages (the wanted one somewhere among them), then the request to quote it."""
        opening = fill(rng.choice(OPENINGS).replace("{code}", code), rng)
        target = rng.choice(passages(_FILE))
        quoted = whole(target, rng, sentences=3 if wanted < _SHORT_PROMPT else 5)
        ask = rng.choice(_ASKS).format(title=target.title, start=" ".join(quoted.split(" ")[:4]))
        place, seed = rng.random(), rng.random()

        def render(units: Sequence[str]) -> str:
            others = paragraphs(units)
            position = round(place * len(others))
            return f"{opening}\n\n{tagged([*others[:position], quoted, *others[position:]])}\n\n{ask}"

        return Draft(units=lambda: sentence_units(seeded(seed), _FILE, target.title), render=render)
