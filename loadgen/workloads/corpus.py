"""The texts that come with the package: read once, split into units."""

import random
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_SLOT = re.compile(r"\{(\w+)\}")
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_SMALL = ("two", "three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(frozen=True)
class CodeUnit:
    """One function, class or statement, with the names in it that may change and what they may become."""

    language: str
    names: tuple[tuple[str, tuple[str, ...]], ...]
    """(name as it stands, other names); the first is the unit's own name."""
    text: str


@dataclass(frozen=True)
class Passage:
    """A titled text as its sentences; `{slots}` are still open."""

    title: str
    sentences: tuple[str, ...]


def read_data(name: str) -> str:
    """The text of a file of `loadgen/workloads/data`."""
    return files("loadgen.workloads").joinpath("data", name).read_text(encoding="utf-8")


def _sections(name: str) -> list[tuple[str, str]]:
    """(heading, body) of every `=== heading` part of a data file."""
    parts = re.split(r"^=== (.*)$", read_data(name), flags=re.MULTILINE)[1:]
    return [(parts[i].strip(), parts[i + 1].strip("\n")) for i in range(0, len(parts), 2)]


@cache
def lines(name: str) -> tuple[str, ...]:
    """The lines of a data file that are not blank."""
    return tuple(line for line in read_data(name).split("\n") if line.strip())


@cache
def word_lists() -> dict[str, tuple[str, ...]]:
    """Lists that fill slots: `people`, `towns`, `teams`, `things`."""
    return {heading: tuple(body.split("\n")) for heading, body in _sections("names.txt")}


@cache
def code_units() -> tuple[CodeUnit, ...]:
    """Every code unit, in the order of the file."""
    units = []
    for language, body in _sections("code.txt"):
        head, _, text = body.partition("\n")
        names = [entry.partition("=") for entry in head.removeprefix("@").split(";")]
        renames = tuple((old.strip(), tuple(new.strip() for new in others.split(","))) for old, _, others in names)
        units.append(CodeUnit(language, renames, text))
    return tuple(units)


@cache
def passages(name: str) -> tuple[Passage, ...]:
    """The passages of a data file: `=== title`, then one sentence a line."""
    return tuple(Passage(title, tuple(body.split("\n"))) for title, body in _sections(name))


def fill(text: str, rng: random.Random) -> str:
    """The text with each `{slot}` filled; every occurrence is drawn anew."""
    return _SLOT.sub(lambda match: _draw(match.group(1), rng), text)


def _draw(slot: str, rng: random.Random) -> str:
    match slot:
        case "number":
            return str(rng.randint(11, 96))
        case "small":
            return rng.choice(_SMALL)
        case "year":
            return str(rng.randint(1890, 2019))
        case "month":
            return rng.choice(_MONTHS)
        case "person" | "town" | "team" | "thing":
            return rng.choice(word_lists()[{"person": "people"}.get(slot, f"{slot}s")])
    raise KeyError(f"no such slot: {slot}")
