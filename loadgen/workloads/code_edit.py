"""Rewriting given code with one small change: the answer repeats nearly all of the prompt's code."""

import random
import re
from collections.abc import Iterator, Sequence

from loadgen.errors import UsageError
from loadgen.workloads.base import TokenCounter
from loadgen.workloads.corpus import CodeUnit, code_units, fill, lines
from loadgen.workloads.fitting import Draft
from loadgen.workloads.randomness import seeded
from loadgen.workloads.text_workload import TextWorkload

SOURCE_TOKENS = (60, 105)
"""The code to be rewritten: short enough that the answer ends by itself below the default cap of 128 tokens."""
_SMALLEST_SOURCE = 50
_FIXED_TOKENS = 55
"""About what the opening, the request and the fence take: a short prompt gets a shorter source."""

_OPENINGS = (
    "{code} is a change request from {person}.",
    "{code}: a small edit for the {team} team.",
    "{code}, asked for by {person} in {town}.",
    "{code}, planned for {month}, belongs to the {team} team.",
)
_ASKS = (
    "Repeat this {language} code exactly, line by line, but {change}. Output only the code.",
    "Rewrite the {language} code above line by line, otherwise unchanged, but {change}. Output only the code.",
    "Repeat the {language} code above completely and exactly, but {change}. Answer with the code only.",
)
_COMMENT = {"python": "# ", "javascript": "// ", "go": "// ", "sql": "-- "}
_TITLE = {"python": "Python", "javascript": "JavaScript", "go": "Go", "sql": "SQL"}
_ENDING = {"python": "py", "javascript": "js", "go": "go", "sql": "sql"}


class CodeEdit(TextWorkload):
    """Code to be rewritten with one small stated change."""

    name = "code-edit"
    description = "rewrite the given code with a small change: high n-gram overlap, the easy case for lookup drafts"
    default_input_tokens = 200
    min_input_tokens = 110

    def draft(self, code: str, rng: random.Random, wanted: int, count_tokens: TokenCounter) -> Draft:
        """Ticket, remarks and other files as needed, then the one fenced block and what to do with it.

        The request stands last: of SmolLM2-135M's output 4-grams 94 % then stand in the prompt (8 answers), with the
        request in front of the code 55 % (10 answers).
        """
        opening = fill(rng.choice(_OPENINGS).replace("{code}", code), rng)
        language, source, names = _source(rng, wanted, count_tokens)
        change = _change(language, source, names, rng)
        ask = rng.choice(_ASKS).format(language=_TITLE[language], change=change)
        fence = f"```{language}\n{source}\n```"
        seed = rng.random()

        def render(units: Sequence[str]) -> str:
            remarks = " ".join((opening, *(unit for unit in units if not unit.startswith("<file"))))
            context = [unit for unit in units if unit.startswith("<file")]
            return "\n\n".join((remarks, *context, "This is the code to change:", fence, ask))

        return Draft(units=lambda: _context(seeded(seed), language), render=render)


def _source(
    rng: random.Random, wanted: int, count_tokens: TokenCounter
) -> tuple[str, str, list[tuple[str, tuple[str, ...]]]]:
    """(language, code of 60 to 105 tokens made of one or more renamed units, its names with other names for each)."""
    high = min(SOURCE_TOKENS[1], max(wanted - _FIXED_TOKENS, _SMALLEST_SOURCE))
    low = min(SOURCE_TOKENS[0], high)
    units = [unit for unit in code_units() if count_tokens(unit.text) <= high]
    if not units:
        raise UsageError(f"code-edit has no source for a prompt of {wanted} tokens; ask for more input tokens")
    rng.shuffle(units)
    language = units[0].language
    texts: list[str] = []
    names: list[tuple[str, tuple[str, ...]]] = []
    total = 0
    for unit in units:
        if unit.language != language:
            continue
        size = count_tokens(unit.text)
        if texts and total + size > high:
            continue
        text, left = rename(unit, rng)
        texts.append(text)
        names += left
        total += size
        if total >= low:
            break
    return language, "\n\n".join(texts), names


def rename(unit: CodeUnit, rng: random.Random) -> tuple[str, list[tuple[str, tuple[str, ...]]]]:
    """(the unit with each of its names drawn from its list, [(name now, the other names)])."""
    chosen: dict[str, str] = {}
    left: list[tuple[str, tuple[str, ...]]] = []
    for old, others in unit.names:
        now = rng.choice((old, *others))
        chosen[old] = now
        left.append((now, tuple(name for name in (old, *others) if name != now)))
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, chosen)) + r")\b")
    return pattern.sub(lambda match: chosen[match.group(1)], unit.text), left


def _change(language: str, source: str, names: list[tuple[str, tuple[str, ...]]], rng: random.Random) -> str:
    """One small change that touches one name, one number or one new line."""
    numbers = re.findall(r"(?<![\w.\"'])[1-9]\d*(?![\w.\"'])", source)
    kind = rng.choice(("name", "name", "number", "comment"))
    if kind == "number" and numbers:
        number = rng.choice(numbers)
        return f"change the number {number} to {int(number) + rng.randint(1, 9)}"
    if kind == "comment":
        mark = _COMMENT[language]
        return f"add the line `{mark}{rng.choice(('checked', 'reviewed', 'keep in step with the tests'))}` at the top"
    old, others = rng.choice(names)
    return f"rename `{old}` to `{rng.choice(others)}`"


def _context(rng: random.Random, language: str) -> Iterator[str]:
    """Remarks without end; a long prompt gets other files too, since nobody writes pages of remarks."""
    notes = list(lines("review_notes.txt"))
    rng.shuffle(notes)
    for note in notes[:12]:
        yield fill(note, rng)
    while True:
        unit = rng.choice(code_units())
        text, names = rename(unit, rng)
        ending = _ENDING[unit.language]
        yield f'<file name="{names[0][0].lower()}_{rng.randint(2, 99)}.{ending}">\n{text}\n</file>'
        for _ in range(2):
            yield fill(rng.choice(notes), rng)
