"""Server-sent events by the WHATWG rules, decoded from stamped blocks; any cutting gives the same events."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One dispatched event."""

    name: bytes
    """The `event` field; empty for a plain message."""
    data: bytes
    """The `data` lines, joined by LF."""
    time_s: float
    """Arrival of the block that held the end of the event (the blank line)."""


class SseDecoder:
    """Blocks in, events out. Only LF, CR and CR LF end a line (cases C03, C06)."""

    def __init__(self) -> None:
        self._pending: list[bytes] = []
        """Pieces of a line whose end has not come."""
        self._data: list[bytes] = []
        self._name = b""
        self._skip_lf = False
        self._at_start = True

    @property
    def unfinished(self) -> bool:
        """True if bytes came after the last event that a stream's end discards."""
        return bool(self._data) or any(self._pending)

    def feed(self, block: bytes, time_s: float) -> list[Event]:
        """The events that end in this block, in their order."""
        if self._at_start:
            block = self._without_bom(block)
        if self._skip_lf and block:
            self._skip_lf = False
            if block[0] == 0x0A:
                block = block[1:]
        if not block:
            return []
        if b"\r" in block:
            self._skip_lf = block[-1] == 0x0D
            block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        elif self._is_one_plain_event(block):
            return [Event(b"", block[6:-2], time_s)]
        lines = block.split(b"\n")
        last = lines.pop()
        if not lines:
            self._pending.append(last)
            return []
        if self._pending:
            lines[0] = b"".join([*self._pending, lines[0]])
            self._pending.clear()
        if last:
            self._pending.append(last)
        return list(self._dispatched(lines, time_s))

    def _is_one_plain_event(self, block: bytes) -> bool:
        """The common case: nothing pending and exactly `data: …` LF LF."""
        return (
            not self._pending
            and not self._data
            and not self._name
            and block.startswith(b"data: ")
            and block.endswith(b"\n\n")
            and block.count(b"\n") == 2
        )

    def _dispatched(self, lines: list[bytes], time_s: float) -> Iterator[Event]:
        data = self._data
        for line in lines:
            if not line:
                if data:
                    yield Event(self._name, data[0] if len(data) == 1 else b"\n".join(data), time_s)
                    data.clear()
                self._name = b""
            elif line.startswith(b"data: "):
                data.append(line[6:])
            elif line[0] != 0x3A:  # a colon first: a comment
                self._field(line)

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._name = value

    def _without_bom(self, block: bytes) -> bytes:
        """The block without a byte order mark; a part of one is held back until the next block decides."""
        held = b"".join([*self._pending, block])
        self._pending.clear()
        if len(held) < 3 and _BOM.startswith(held):
            self._pending.append(held)
            return b""
        self._at_start = False
        return held.removeprefix(_BOM)


def decode_sse(blocks: Iterable[bytes], times_s: Iterable[float]) -> Iterator[Event]:
    """The events of a whole body; `times_s` runs in parallel with `blocks`."""
    decoder = SseDecoder()
    for block, time_s in zip(blocks, times_s, strict=True):
        yield from decoder.feed(block, time_s)
