"""Running text out of the package's passages, sentence by sentence and without end."""

import random
from collections.abc import Iterator, Sequence
from itertools import groupby

from loadgen.workloads.corpus import Passage, fill, passages


def sentence_units(rng: random.Random, file: str, leave_out: str = "") -> Iterator[str]:
    """Sentences of shuffled passages, each marked with its passage's number; `leave_out` is a title to be skipped."""
    number = 0
    while True:
        pool = [passage for passage in passages(file) if passage.title != leave_out]
        rng.shuffle(pool)
        for passage in pool:
            number += 1
            for sentence in passage.sentences:
                yield f"{number}\t{fill(sentence, rng)}"


def paragraphs(units: Sequence[str]) -> list[str]:
    """The marked sentences as paragraphs, one per passage."""
    marked = [unit.partition("\t") for unit in units]
    return [" ".join(text for _, _, text in group) for _, group in groupby(marked, key=lambda part: part[0])]


def whole(passage: Passage, rng: random.Random, sentences: int) -> str:
    """The passage's text with at most so many of its sentences, in their order, slots filled."""
    kept = sorted(rng.sample(range(len(passage.sentences)), min(sentences, len(passage.sentences))))
    return " ".join(fill(passage.sentences[index], rng) for index in kept)


def tagged(texts: Sequence[str]) -> str:
    """The texts as numbered `<passage id=N>` blocks."""
    return "\n\n".join(f"<passage id={number}>\n{text}\n</passage>" for number, text in enumerate(texts, start=1))
