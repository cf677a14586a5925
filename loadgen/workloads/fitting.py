"""Brings a text to a wanted number of tokens by adding or leaving out whole units."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from loadgen.workloads.base import TokenCounter

TOLERANCE = 0.05
_AIM = 0.015
_ROUNDS = 6
_LOOK_AHEAD = 40


@dataclass(frozen=True)
class Draft:
    """A text that can grow: `render` makes it from the chosen units, `units` gives them anew at each call."""

    units: Callable[[], Iterator[str]]
    render: Callable[[Sequence[str]], str]


@dataclass(frozen=True)
class Fitted:
    """A text, and how far from the wanted length it is."""

    text: str
    tokens: int
    wanted: int

    @property
    def miss(self) -> int:
        """Tokens too many or too few."""
        return abs(self.wanted - self.tokens)

    @property
    def good(self) -> bool:
        """True within 5 % (one token for very short prompts)."""
        return self.miss <= max(self.wanted * TOLERANCE, 1)


def fit(draft: Draft, wanted: int, count_tokens: TokenCounter) -> Fitted:
    """The draft's text nearest to `wanted` tokens that a few tries find.

    Units are chosen by their share of characters and the whole text is counted after each try, so that a counter that
    asks a server is called a few times a prompt, not once a unit.
    """
    text = draft.render(())
    best = Fitted(text, count_tokens(text), wanted)
    chars_per_token = len(text) / max(best.tokens, 1)
    room = (wanted - best.tokens) * chars_per_token
    for _ in range(_ROUNDS):
        if best.miss <= wanted * _AIM or room <= 0:
            break
        text = draft.render(_take(draft.units(), room))
        found = Fitted(text, count_tokens(text), wanted)
        best = min(best, found, key=lambda fitted: fitted.miss)
        chars_per_token = len(text) / max(found.tokens, 1)
        room += (wanted - found.tokens) * chars_per_token
    return best


def _take(units: Iterator[str], room: float) -> list[str]:
    """Units in their order while they fit; then from the next few those that fill what is left best."""
    taken: list[str] = []
    for unit in units:
        if len(unit) + 1 > room:
            pool = [unit, *islice(units, _LOOK_AHEAD)]
            break
        taken.append(unit)
        room -= len(unit) + 1
    else:
        return taken
    while pool:
        nearest = min(range(len(pool)), key=lambda index: abs(room - len(pool[index]) - 1))
        size = len(pool[nearest]) + 1
        if abs(room - size) >= abs(room):
            break
        taken.append(pool.pop(nearest))
        room -= size
    return taken
