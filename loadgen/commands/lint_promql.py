"""PromQL, as far as a lint needs it: names, ranges and what an aggregation is applied to."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`[^`]*`")
_COMMENT = re.compile(r"#[^\n]*")
_NAME = re.compile(r"(?<![\w:$.])[a-zA-Z_:][\w:]*")
_LABEL_LIST = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^()]*)\)")
_MODIFIER = re.compile(r"\s*\b(?:by|without)\s*\([^()]*\)\s*")
_AGGREGATION = re.compile(r"\b(sum|avg|max|min|stddev|stdvar|quantile)\b(?=\s*(?:by|without|\())")
_RANGED = re.compile(r"\b(rate|irate|increase|delta|deriv|resets|changes|\w+_over_time)\s*\(")
_WORDS = frozenset(
    re.findall(
        r"\w+",
        "and or unless by without on ignoring group_left group_right offset bool inf nan start end atan2 sum min max "
        "avg group stddev stdvar count count_values bottomk topk quantile limitk limit_ratio",
    )
)


@dataclass(frozen=True)
class Aggregation:
    """`sum by (le) (inside)`."""

    operator: str
    labels: tuple[str, ...] | None
    """The labels of `by`; None without it."""
    inside: str


def plain(expr: str) -> str:
    """The expression with its strings emptied and its comments gone: what brackets and names are looked for in."""
    return _COMMENT.sub(" ", _STRING.sub('""', expr))


def metric_names(expr: str) -> set[str]:
    """The names of the series that the expression reads; `__name__` matchers and variables are not resolved."""
    text = plain(expr)
    text = _LABEL_LIST.sub(" ", text)
    text = re.sub(r"\{[^{}]*\}", " {} ", re.sub(r"\$\{[^}]*\}", "$v", text))
    text = re.sub(r"\[[^\]]*\]", " ", text)
    found = set()
    for match in _NAME.finditer(text):
        name = match[0]
        is_call = text[match.end() :].lstrip().startswith("(")
        if not is_call and name.lower() not in _WORDS:
            found.add(name)
    return found


def ranges(expr: str) -> Iterator[tuple[str, str]]:
    """(function, range) of each call over a range: `("rate", "$__interval")`, `("increase", "1m")`."""
    text = plain(expr)
    for match in _RANGED.finditer(text):
        inside = _argument(text, match.end() - 1)
        found = re.search(r"\[([^\]:]*)\]\s*(?:offset\s+\S+\s*)?\)?$", inside.strip())
        if found:
            yield match[1], found[1].strip()


def aggregations(expr: str) -> Iterator[Aggregation]:
    """Each aggregation with what it is applied to, outer ones first."""
    text = plain(expr)
    for match in _AGGREGATION.finditer(text):
        position = match.end()
        before = _MODIFIER.match(text, position)
        start = text.find("(", before.end() if before else position)
        if start < 0:
            continue
        inside = _argument(text, start)
        after = _MODIFIER.match(text, start + len(inside) + 2)
        clause = (before or after)[0] if before or after else ""  # type: ignore[index]  # one of them is there
        labels = re.search(r"\bby\s*\(([^()]*)\)", clause)
        by = tuple(part.strip() for part in labels[1].split(",") if part.strip()) if labels else None
        yield Aggregation(match[1], by, inside)


def has_top_level(expr: str, operator: str) -> bool:
    """True if the operator stands outside all brackets."""
    depth = 0
    for char in plain(expr):
        depth += (char in "([{") - (char in ")]}")
        if char == operator and depth == 0:
            return True
    return False


def _argument(text: str, start: int) -> str:
    """What stands between the bracket at `start` and its partner; up to the end if it has none."""
    depth = 0
    for position in range(start, len(text)):
        depth += (text[position] == "(") - (text[position] == ")")
        if depth == 0:
            return text[start + 1 : position]
    return text[start + 1 :]
