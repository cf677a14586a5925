"""A lab sheet in Spanish: a question about reversing a linked list, then a passage to summarise and to quote."""

import random
from collections.abc import Sequence

from loadgen.workloads.base import TokenCounter
from loadgen.workloads.corpus import fill, passages
from loadgen.workloads.fitting import Draft
from loadgen.workloads.passage_text import paragraphs, sentence_units, tagged, whole
from loadgen.workloads.randomness import seeded
from loadgen.workloads.text_workload import TextWorkload

_FILE = "passages_es.txt"
_OPENINGS = (
    "{code} es el número de esta práctica.",
    "{code}: práctica de {person}.",
    "{code}, entregada en {town}.",
    "{code} (grupo {number}).",
)
_QUESTIONS = (
    "Explica en dos frases cómo se invierte una lista enlazada simple sin usar memoria adicional.",
    "¿Cómo se invierte una lista enlazada con tres punteros? Responde en dos frases.",
    "Di en dos frases por qué invertir una lista enlazada de {number} nodos cuesta un tiempo lineal.",
    "Compara en dos frases la versión iterativa y la recursiva de invertir una lista enlazada.",
)
_TASKS = (
    "Después resume en una frase el pasaje sobre {title} y cita el pasaje completo, palabra por palabra.",
    "A continuación resume en una frase el pasaje sobre {title} y copia después el pasaje completo, sin cambiar nada.",
)


class LabL31(TextWorkload):
    """One part to be thought of, one to be copied, in a language that tokenizers split more finely."""

    name = "lab-l31"
    description = "in Spanish: reversing a linked list, then summarise a passage and quote it: half free, half copied"
    default_input_tokens = 250
    min_input_tokens = 130
    default_max_tokens = 192

    def draft(self, code: str, rng: random.Random, wanted: int, count_tokens: TokenCounter) -> Draft:
        """Number, question, task, then the passages with the wanted one among them."""
        opening = fill(rng.choice(_OPENINGS).replace("{code}", code), rng)
        question = fill(rng.choice(_QUESTIONS), rng)
        target = rng.choice(passages(_FILE))
        quoted = whole(target, rng, sentences=2 if wanted < 200 else 4)
        task = rng.choice(_TASKS).format(title=target.title)
        place, seed = rng.random(), rng.random()

        def render(units: Sequence[str]) -> str:
            others = paragraphs(units)
            position = round(place * len(others))
            texts = tagged([*others[:position], quoted, *others[position:]])
            return f"{opening} {question} {task}\n\n{texts}"

        return Draft(units=lambda: sentence_units(seeded(seed), _FILE, target.title), render=render)
