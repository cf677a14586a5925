"""Lists on the command line, read and checked."""

from collections.abc import Callable
from typing import TypeVar

from loadgen.errors import UsageError
from loadgen.profiles.values import short

T = TypeVar("T")
MOST_TOKENS = 1_000_000
"""No context is longer."""


def names(text: str, option: str) -> tuple[str, ...]:
    """The comma-separated names, each once, in their order; UsageError if there is none."""
    found = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not found:
        raise UsageError(f"{option} is empty; give at least one name.")
    return found


def levels(text: str) -> tuple[int, ...]:
    """Concurrency levels, ascending, each once: `1,2,4,8`."""
    found = sorted(set(_numbers(text, "--levels", int)))
    if found[0] < 1:
        raise UsageError(f"--levels has {found[0]}; a level is the number of requests in flight, so 1 is the least.")
    if found[-1] > 4096:
        raise UsageError(f"--levels has {short(found[-1])}; one client holds up to 4096 requests in flight.")
    return tuple(found)


def counts(text: str, option: str) -> tuple[int, ...]:
    """Whole numbers above 0 in their order: `500,4000`."""
    found = tuple(dict.fromkeys(_numbers(text, option, int)))
    if not 1 <= min(found) <= max(found) <= MOST_TOKENS:
        wrong = min(found) if min(found) < 1 else max(found)
        raise UsageError(f"{option} has {short(wrong)}; give whole numbers from 1 to {MOST_TOKENS}.")
    return found


def temperatures(text: str) -> tuple[float, ...]:
    """Temperatures from 0 to 2: `0,0.8`."""
    found = tuple(dict.fromkeys(_numbers(text, "--temperature", float)))
    if not all(0 <= value <= 2 for value in found):
        raise UsageError(f"--temperature {short(text)} is out of range; give numbers from 0 to 2.")
    return found


def seconds(text: str, option: str) -> float:
    """A time span in seconds: `90`, `90s`, `10m` or `2h`."""
    unit = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(text[-1:])
    try:
        value = float(text[:-1] if unit else text) * (unit or 1.0)
    except ValueError:
        raise UsageError(f"{option} {short(text)} is no time; write it like 90s, 10m or 2h.") from None
    if not 0 < value < 1e7:
        raise UsageError(f"{option} {short(text)} is out of range; give a time above 0.")
    return value


def span(value: float, option: str, least: float, most: float) -> float:
    """The seconds, if they lie between the two; UsageError else, for a NaN too."""
    if not least <= value <= most:
        raise UsageError(f"{option} {value:g} is out of range; give seconds from {least:g} to {most:g}.")
    return value


def share(text: str, option: str) -> float:
    """A share between 0 and 1: `10%` or `0.1`."""
    try:
        value = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        raise UsageError(f"{option} {short(text)} is no share; write it like 10% or 0.1.") from None
    if not 0 < value < 1:
        raise UsageError(f"{option} {short(text)} is out of range; give a share like 10%.")
    return value


def _numbers(text: str, option: str, kind: Callable[[str], T]) -> list[T]:
    try:
        found = [kind(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise UsageError(f"{option} {short(text)} is no list of numbers; write it like 1,2,4.") from None
    if not found:
        raise UsageError(f"{option} is empty; write it like 1,2,4.")
    return found
