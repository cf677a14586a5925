"""How an answer is put together, read from the prompt: what it copies from, how much, and how long it gets."""

import re
from dataclasses import dataclass

_FENCE = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)
_PASSAGE = re.compile(r"<passage[^>]*>(.*?)</passage>", re.DOTALL | re.IGNORECASE)
_USER = "<|im_start|>user\n"


@dataclass(frozen=True)
class Behaviour:
    """One part of an answer."""

    name: str
    copy_run: float
    """Mean tokens copied in one go; 0 = nothing is copied."""
    gap: float
    """Mean new tokens between two copied runs."""
    whole: bool = False
    """True: walks through the whole source in order and ends with it."""
    length: float = 100.0
    """Mean tokens, where the source does not set the end."""


# Run lengths are chosen so that n-gram lookup (K = 4, 2 to 5) gets about what SmolLM2-135M showed on a CPU vLLM 0.32 at
# temperature 0: 0.65 of drafted tokens and 2.7 tokens per step on code to be edited.
_EDIT = Behaviour("edit", copy_run=10, gap=1.6, whole=True)
_REPEAT = Behaviour("repeat", copy_run=120, gap=1.0, whole=True)
_QUOTE = Behaviour("quote", copy_run=24, gap=12, length=150)
_EXTRACT = Behaviour("extract", copy_run=5, gap=4, length=90)
_SUMMARISE = Behaviour("summarise", copy_run=4, gap=9, length=110)
_TRANSLATE = Behaviour("translate", copy_run=2, gap=40, length=160)
_QUESTION = Behaviour("question", copy_run=3, gap=14, length=100)
_CREATIVE = Behaviour("creative", copy_run=0, gap=1, length=220)
_CHAT = Behaviour("chat", copy_run=0, gap=1, length=100)

_WORDS: tuple[tuple[Behaviour, str], ...] = (
    (_REPEAT, r"repeat|verbatim|copy|word for word|repite|copia"),
    (_EDIT, r"rewrite|edit|refactor|rename|modif\w*|fix|change|update|add|remove|replace|reescribe|cambia\w*"),
    (_QUOTE, r"quot\w*|cite|cita\w*"),
    (_EXTRACT, r"extract\w*|json|fields?|extrae"),
    (_SUMMARISE, r"summari[sz]e\w*|summary|condense|res[uú]m\w*"),
    (_TRANSLATE, r"translat\w*|traduc\w*"),
    (_CREATIVE, r"story|poem|imagine|creative|novel|invent|cuento|poema"),
)
_PATTERNS = tuple((behaviour, re.compile(rf"\b(?:{words})\b", re.IGNORECASE)) for behaviour, words in _WORDS)


@dataclass(frozen=True)
class Intent:
    """What a prompt asks for."""

    source: str
    """The text between fences or passage tags, parts joined by a line break; empty without any."""
    fenced: bool
    parts: tuple[Behaviour, ...]


def read_intent(prompt: str) -> Intent:
    """The intent of a rendered prompt. Only the last user message counts, sources left out of the instruction."""
    asked = prompt.rpartition(_USER)[2].partition("<|im_end|>")[0]
    fences = _FENCE.findall(asked)
    passages = _PASSAGE.findall(asked)
    source = "\n".join([*fences, *passages])
    instruction = _PASSAGE.sub(" ", _FENCE.sub(" ", asked))
    return Intent(source, bool(fences), _parts(instruction, bool(source.strip()), bool(fences)))


def _parts(instruction: str, has_source: bool, fenced: bool) -> tuple[Behaviour, ...]:
    found = [(match.start(), b) for b, pattern in _PATTERNS if (match := pattern.search(instruction))]
    wanted = [b for _, b in sorted(found, key=lambda pair: pair[0])]
    if not has_source:
        # Without a source nothing can be copied; only the kind of answer remains.
        return (_CREATIVE,) if _CREATIVE in wanted else (_CHAT,)
    wanted = [b for b in wanted if b is not _CREATIVE]
    # Code is edited as a whole, whatever else the request says; of a passage the first two wishes are met.
    whole = next((b for b in wanted if b.whole), None) if fenced else None
    return (whole,) if whole else tuple(wanted[:2]) or (_QUESTION,)
