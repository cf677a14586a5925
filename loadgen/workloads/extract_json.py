"""Filling a JSON object from a letter: a fixed frame, and values copied from the prompt."""

import random
from collections.abc import Iterator, Sequence

from loadgen.workloads.base import TokenCounter
from loadgen.workloads.corpus import fill, lines, passages
from loadgen.workloads.fitting import Draft
from loadgen.workloads.open_question import OPENINGS
from loadgen.workloads.passage_text import tagged
from loadgen.workloads.randomness import seeded
from loadgen.workloads.text_workload import TextWorkload

_ASKS = (
    "Extract these fields from the message above as one JSON object with the keys {keys}. Output only the JSON.",
    "Extract the values of {keys} from the text and answer with one JSON object, nothing else.",
)


class ExtractJson(TextWorkload):
    """A letter with a handful of facts in it, and the keys under which they are wanted."""

    name = "extract-json"
    description = "extract fields from a text as JSON: short answers, values copied from the prompt"
    default_input_tokens = 200
    min_input_tokens = 130

    def draft(self, code: str, rng: random.Random, wanted: int, count_tokens: TokenCounter) -> Draft:
        """Ticket, the letter with its facts among small talk, then the keys."""
        opening = fill(rng.choice(OPENINGS).replace("{code}", code), rng)
        record = rng.choice(passages("records.txt"))
        keys, *facts = record.sentences
        told = [fill(fact, rng) for fact in facts]
        ask = rng.choice(_ASKS).format(keys=", ".join(f"`{key.strip()}`" for key in keys.removeprefix("@").split(",")))
        seed = rng.random()

        def render(units: Sequence[str]) -> str:
            middle = len(units) // 2
            letter = " ".join((*units[:middle], *told, *units[middle:]))
            return f"{opening}\n\n{tagged([letter])}\n\n{ask}"

        return Draft(units=lambda: _small_talk(seeded(seed)), render=render)


def _small_talk(rng: random.Random) -> Iterator[str]:
    """Remarks that carry no fact; later, sentences about other things, so that no long letter repeats itself."""
    talk = list(lines("small_talk.txt"))
    rng.shuffle(talk)
    yield from talk
    while True:
        passage = rng.choice(passages("passages.txt"))
        yield fill(rng.choice(passage.sentences), rng)
