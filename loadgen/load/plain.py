"""A whole body at once, if it is as plain as vLLM's: the same replies and times as event by event, at a third of the
cost. Any doubt, and the caller goes event by event.
"""

from collections.abc import Iterator, Sequence

from loadgen.load.openai import Reply, parse_lines

_FIRST = b"data: {"
_LAST = b"}\n\ndata: [DONE]\n\n"


def plain_replies(blocks: Sequence[bytes], times_s: Sequence[float]) -> tuple[list[Reply], list[float]] | None:
    """(each event's reply, arrival of the block that held its end), `[DONE]` left out. None unless every event is one
    line `data: {…}` with LF ends and one reply, and `[DONE]` ends the body.
    """
    body = b"".join(blocks)
    if b"\r" in body or not body.startswith(_FIRST) or not body.endswith(_LAST):
        return None
    parts = body[len(b"data: ") : 1 - len(_LAST)].split(b"\n\ndata: ")
    lines = b"\n".join(parts)
    # no other line end, and every line from brace to brace: then no value can reach over the end of its event
    if lines.count(b"\n") != len(parts) - 1 or lines.count(b"}\n{") != len(parts) - 1:
        return None
    replies = parse_lines(lines)
    if replies is None or len(replies) != len(parts):
        return None
    return replies, list(_times(parts, blocks, times_s))


def _times(parts: Sequence[bytes], blocks: Sequence[bytes], times_s: Sequence[float]) -> Iterator[float]:
    """When the end of each event (its value between `data: ` and two line ends) had come."""
    at, filled, needed = 0, len(blocks[0]), 0
    for part in parts:
        needed += len(part) + 8
        while filled < needed:
            at += 1
            filled += len(blocks[at])
        yield times_s[at]
