"""The answer as a title: short enough for a headline; the whole sentence then stands below it."""

import re

LONG = 100
"""Characters from which on an answer is shortened."""
ASIDE = 48
"""Characters up to which a parenthesis stays whole."""
STOP = re.compile(r"[:;,] ")


def short_title(answer: str) -> str:
    """The answer with each long parenthesis cut at its last stop within `ASIDE`, or left out if it has none there;
    the answer itself where it is short.
    """
    if len(answer) <= LONG:
        return answer
    parts: list[str] = []
    start = depth = 0
    for place, sign in enumerate(answer):
        if sign == "(":
            if depth == 0:
                parts.append(answer[start:place])
                start = place
            depth += 1
        elif sign == ")" and depth:
            depth -= 1
            if depth == 0:
                parts.append(_aside(answer[start + 1 : place]))
                start = place + 1
    parts.append(answer[start:])
    return re.sub(r" +([.,;:]|$)", r"\1", re.sub(r" {2,}", " ", "".join(parts)))


def _aside(text: str) -> str:
    if len(text) <= ASIDE:
        return f"({text})"
    # A stop inside a further parenthesis would leave that one open.
    stops = [found.start() for found in STOP.finditer(text[:ASIDE]) if "(" not in text[: found.start()]]
    return f"({text[: stops[-1]]})" if stops else ""
