"""A whole body at once, if it is as plain as vLLM's: the same replies and times as event by event, at a third of the
cost. Any doubt, and the caller goes event by event.
"""

from collections.abc import Iterator, Sequence

from loadgen.load.openai import Reply, parse_lines

_FIRST = b"data: {"
_BETWEEN = b"}\n\ndata: {"
_LAST = b"}\n\ndata: [DONE]\n\n"


def plain_replies(blocks: Sequence[bytes], times_s: Sequence[float]) -> tuple[list[Reply], list[float]] | None:
    """(each event's reply, arrival of the block that held its end), `[DONE]` left out. None unless every event is one
    line `data: {…}` with LF ends and one reply, and `[DONE]` ends the body.
    """
    body = b"".join(blocks)
    if b"\r" in body or not body.startswith(_FIRST) or not body.endswith(_LAST):
        return None
    parts = body.split(b"\n\n")
    events = len(parts) - 2
    # all line ends are in pairs, and all pairs between braces: no value can reach over the end of its event
    if body.count(b"\n") != 2 * (events + 1) or body.count(_BETWEEN) != events - 1:
        return None
    replies = parse_lines(body[len(b"data: ") : 1 - len(_LAST)].replace(b"\n\ndata: ", b"\n"))
    if replies is None or len(replies) != events:
        return None
    del parts[events:]
    return replies, list(_times(parts, blocks, times_s))


def _times(parts: Sequence[bytes], blocks: Sequence[bytes], times_s: Sequence[float]) -> Iterator[float]:
    """When the end of each event (its part and two line ends) had come."""
    at, filled, needed = 0, len(blocks[0]), 0
    for part in parts:
        needed += len(part) + 2
        while filled < needed:
            at += 1
            filled += len(blocks[at])
        yield times_s[at]
