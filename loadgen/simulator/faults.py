"""Faults on purpose, for tests of clients: each is a way in which real servers and networks have failed."""

import zlib
from dataclasses import dataclass

from loadgen.errors import UsageError
from loadgen.simulator.chunks import DONE
from loadgen.simulator.errors import ApiError, engine_dead, status_error
from loadgen.simulator.http import Exchange

KINDS = {
    "unavailable": "503 for the first N requests (default 2)",
    "slow-health": "/health says 200 at once, completions get 503 until N seconds after the start (default 5)",
    "engine-death": "the engine dies after N requests (default 1)",
    "error-mid-stream": "an error event after N events of every stream (default 3)",
    "early-end": "a proper end of the body after N events, without finish_reason and [DONE] (default 3)",
    "truncated": "the connection closes after N events, in the middle of the chunked body (default 3)",
    "reset": "the connection is reset after N events (default 3)",
    "gzip": "bodies are compressed although nobody asked",
    "keep-alive": "N comment lines before every event (default 1)",
}
_DEFAULTS = {"unavailable": 2.0, "slow-health": 5.0, "engine-death": 1.0, "keep-alive": 1.0}


@dataclass(frozen=True)
class Fault:
    """One fault and its number."""

    kind: str
    amount: float

    @classmethod
    def parse(cls, text: str) -> "Fault":
        """`NAME` or `NAME:NUMBER`; UsageError names the known ones."""
        kind, _, amount = text.partition(":")
        if kind not in KINDS:
            listed = "; ".join(f"{name} ({words})" for name, words in KINDS.items())
            raise UsageError(f"There is no fault {kind!r}; choose one of: {listed}.")
        try:
            return cls(kind, float(amount) if amount else _DEFAULTS.get(kind, 3.0))
        except ValueError:
            raise UsageError(f"The number in --fault {text} is no number; write for example {kind}:2.") from None

    def refusal(self, earlier_requests: int, uptime_s: float) -> ApiError | None:
        """The error for a completion request that came after so many others, if this fault refuses it."""
        if (self.kind == "unavailable" and earlier_requests < self.amount) or (
            self.kind == "slow-health" and uptime_s < self.amount
        ):
            return status_error(503, "Service Unavailable")
        return None

    def kills_engine(self, earlier_requests: int) -> bool:
        """True if the engine dies with the request that came after so many others."""
        return self.kind == "engine-death" and earlier_requests >= self.amount

    def spoil(self, exchange: Exchange) -> "Exchange | SpoiltExchange":
        """The exchange as this fault leaves it."""
        if self.kind in ("unavailable", "slow-health", "engine-death"):
            return exchange
        return SpoiltExchange(exchange, self)


class SpoiltExchange:
    """An exchange that goes wrong on its way to the client."""

    def __init__(self, inner: Exchange, fault: Fault) -> None:
        self._inner = inner
        self._fault = fault
        self._events = 0
        self._gzip = zlib.compressobj(wbits=31) if fault.kind == "gzip" else None

    @property
    def gone(self) -> bool:
        """True once nothing can be written any more."""
        return self._inner.gone

    @property
    def congested(self) -> bool:
        """True while the client reads too slowly."""
        return self._inner.congested

    def respond(self, status: int, body: bytes, content_type: str = "application/json") -> None:
        """Sends a whole answer, compressed for `gzip`."""
        if self._gzip is None:
            self._inner.respond(status, body, content_type)
        else:
            packed = self._gzip.compress(body) + self._gzip.flush()
            self._inner.respond(status, packed, content_type, (("content-encoding", "gzip"),))

    def open_stream(self) -> None:
        """Opens the stream."""
        self._inner.open_stream((("content-encoding", "gzip"),) if self._gzip is not None else ())

    def send(self, data: bytes) -> None:
        """Sends one event, or what the fault makes of it."""
        if not data:
            return
        if self._gzip is not None:
            self._inner.send(self._gzip.compress(data) + self._gzip.flush(zlib.Z_SYNC_FLUSH))
        elif self._fault.kind == "keep-alive":
            self._inner.send(b": keep-alive\n\n" * int(self._fault.amount) + data)
        elif self._events < self._fault.amount:
            self._events += 1
            self._inner.send(data)
        else:
            self._strike()

    def close_stream(self) -> None:
        """Ends the stream, unless the fault did."""
        if self._gzip is not None:
            self._inner.send(self._gzip.flush())
        self._inner.close_stream()

    def _strike(self) -> None:
        if self._inner.gone:
            return
        if self._fault.kind == "error-mid-stream":
            self._inner.send(engine_dead().event)
            self._inner.send(DONE)
            self._inner.close_stream()
        elif self._fault.kind == "early-end":
            self._inner.close_stream()
        elif self._fault.kind == "truncated":
            self._inner.cut()
        else:
            self._inner.reset()
