"""The chunk-stamp format: which bytes of a response arrived when. The seam between transport and decoding."""

from dataclasses import dataclass, field
from enum import StrEnum


class End(StrEnum):
    """How an exchange ended on the wire."""

    OPEN = "open"
    """Not yet."""
    COMPLETE = "complete"
    """The response ended as HTTP says it should."""
    CONNECT_FAILED = "connect_failed"
    CLOSED = "closed"
    """The server closed or reset the connection before the response had ended."""
    PROTOCOL = "protocol"
    """What came was not HTTP/1.1, or beyond a bound."""
    CONNECT_TIMEOUT = "connect_timeout"
    FIRST_BYTE_TIMEOUT = "first_byte_timeout"
    IDLE_TIMEOUT = "idle_timeout"
    TOTAL_TIMEOUT = "total_timeout"
    CANCELLED = "cancelled"
    """The client ended it."""


TIMEOUT_ENDS = frozenset({End.CONNECT_TIMEOUT, End.FIRST_BYTE_TIMEOUT, End.IDLE_TIMEOUT, End.TOTAL_TIMEOUT})


@dataclass(slots=True)
class Arrivals:
    """One exchange as it was seen on the wire. Times are `loadgen.clock.now_s`, taken before anything is parsed.

    `times_s` and `blocks` run in parallel: one entry per network read that held body bytes, after de-chunking and
    before any content decoding. A response that is read as a stream keeps its times only; `blocks` stays empty.
    """

    sent_s: float = 0.0
    """Just before the request bytes of the attempt that counts were written."""
    first_byte_s: float | None = None
    """First byte of the response, its head included."""
    ended_s: float = 0.0
    ended: End = End.OPEN
    error: str | None = None
    status: int | None = None
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    times_s: list[float] = field(default_factory=list)
    blocks: list[bytes] = field(default_factory=list)
    size: int = 0
    """Body bytes so far."""
    attempts: int = 0
    """Times the request was written: 2 if a kept connection turned out to be closed by the server."""

    coarse: bool = False
    """True if another transport than ours stamped it: later, and after its own parsing."""

    def add(self, time_s: float, block: bytes) -> None:
        """Appends one network read."""
        self.times_s.append(time_s)
        self.blocks.append(block)
        self.size += len(block)

    def end(self, how: End, at_s: float, error: str | None = None) -> None:
        """Notes the end; the first one counts."""
        if self.ended is End.OPEN:
            self.ended, self.ended_s, self.error = how, at_s, error

    def reopen(self) -> None:
        """Back to the state before the send: for a second attempt after a kept connection failed."""
        self.ended, self.ended_s, self.error = End.OPEN, 0.0, None

    def header(self, name: bytes) -> bytes | None:
        """The last value of a header, by its lower-case name; None if it did not come."""
        return next((value for key, value in reversed(self.headers) if key.lower() == name), None)
