"""Brings a text to a wanted number of tokens by adding or leaving out whole units."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from loadgen.errors import UsageError
from loadgen.workloads.base import TokenCounter

TOLERANCE = 0.05
_AIM = 0.015
_ROUNDS = 8
_MISSES = 60


@dataclass(frozen=True)
class Draft:
    """A text that can grow: `render` makes it from the chosen units, `units` gives them anew at each call."""

    units: Callable[[], Iterator[str]]
    render: Callable[[Sequence[str]], str]


def fit(draft: Draft, wanted: int, count_tokens: TokenCounter, name: str) -> str:
    """The draft's text with `wanted` tokens, within 5 %; UsageError if its fixed part alone is longer.

    Units are chosen by their share of characters and the whole text is counted after each try, so that a counter that
    asks a server is called a few times a prompt, not once a unit.
    """
    bare = draft.render(())
    bare_tokens = count_tokens(bare)
    if bare_tokens > wanted * (1 + TOLERANCE):
        raise UsageError(
            f"{name} cannot make a prompt of {wanted} tokens, since its shortest here has {bare_tokens}; "
            "ask for more input tokens"
        )
    chars_per_token = len(bare) / max(bare_tokens, 1)
    room = (wanted - bare_tokens) * chars_per_token
    best, best_miss = bare, wanted - bare_tokens
    for _ in range(_ROUNDS):
        if abs(best_miss) <= wanted * _AIM:
            break
        text = draft.render(_take(draft.units(), room))
        tokens = count_tokens(text)
        if abs(wanted - tokens) < abs(best_miss):
            best, best_miss = text, wanted - tokens
        chars_per_token = len(text) / max(tokens, 1)
        room += (wanted - tokens) * chars_per_token
    if abs(best_miss) > max(wanted * TOLERANCE, 1):
        raise UsageError(f"{name} cannot meet {wanted} input tokens within 5 % ({best_miss:+d} missing); ask for more")
    return best


def _take(units: Iterable[str], room: float) -> list[str]:
    """Units in their order until `room` characters are full; too long ones are passed over, up to a limit."""
    taken: list[str] = []
    misses = 0
    for unit in units:
        if len(unit) + 1 <= room:
            taken.append(unit)
            room -= len(unit) + 1
        else:
            misses += 1
        if room < 6 or misses > _MISSES:
            break
    return taken
