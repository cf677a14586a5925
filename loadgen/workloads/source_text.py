"""Prompts about one given text: summarise it, or translate it."""

import random
from collections.abc import Iterator, Sequence

from loadgen.workloads.base import TokenCounter
from loadgen.workloads.corpus import fill
from loadgen.workloads.fitting import Draft
from loadgen.workloads.open_question import OPENINGS
from loadgen.workloads.passage_text import paragraphs, sentence_units, tagged
from loadgen.workloads.randomness import seeded
from loadgen.workloads.text_workload import TextWorkload

_CLASSIC_SHARE = 0.2
"""One text in five begins with a well-known page, which a model may know by heart."""


class SourceText(TextWorkload):
    """An instruction, then a text of the wanted length."""

    asks: tuple[str, ...]

    def draft(self, code: str, rng: random.Random, wanted: int, count_tokens: TokenCounter) -> Draft:
        """Ticket, instruction, then as many sentences as fit."""
        opening = fill(rng.choice(OPENINGS).replace("{code}", code), rng)
        ask = rng.choice(self.asks)
        classic = rng.random() < _CLASSIC_SHARE
        seed = rng.random()

        def render(units: Sequence[str]) -> str:
            text = "\n\n".join(paragraphs(units))
            return f"{opening} {ask}\n\n{tagged([text])}"

        return Draft(units=lambda: _sentences(seeded(seed), classic=classic), render=render)


class Summarise(SourceText):
    """A text to be summarised: the answer takes words from it, but few whole phrases."""

    name = "summarise"
    description = "summarise the given text: middling n-gram overlap"
    default_input_tokens = 300
    min_input_tokens = 60
    asks = (
        "Summarise the following text in three sentences.",
        "Summarise this text in one short paragraph, for a reader who has no time.",
        "Summarise what follows in your own words, in at most four sentences.",
    )


class Translate(SourceText):
    """A text to be translated: names and numbers recur, all else is new."""

    name = "translate"
    description = "translate the given text: low n-gram overlap, since the answer is in another language"
    default_input_tokens = 130
    min_input_tokens = 60
    asks = (
        "Translate the following text into French. Output only the translation.",
        "Translate the following text into German. Output only the translation.",
        "Translate the following text into Spanish. Output only the translation.",
        "Translate the following text into Italian. Output only the translation.",
    )


def _sentences(rng: random.Random, *, classic: bool) -> Iterator[str]:
    """A page of a classic first, if wanted, then the package's own passages."""
    if classic:
        for unit in sentence_units(rng, "classics.txt"):
            number, _, text = unit.partition("\t")
            if number != "1":
                break
            yield f"0\t{text}"
    yield from sentence_units(rng, "passages.txt")
