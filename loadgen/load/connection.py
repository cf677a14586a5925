"""One HTTP/1.1 connection as an asyncio protocol: stamps each read, then parses it."""

import asyncio
from time import monotonic
from typing import cast

from loadgen.clock import now_s
from loadgen.load.arrivals import Arrivals, End
from loadgen.load.exchange import HIGH_WATER, LOW_WATER, MAX_CAPTURE, Exchange
from loadgen.load.http1 import FRAMING_ERRORS, ResponseParser


class Connection(asyncio.Protocol):
    """A connection that carries one exchange after another."""

    def __init__(self) -> None:
        self.closed = False
        self.idle_since_s = 0.0
        self.used = False
        """True once a response was completed on it: only then may a loss be the keep-alive race."""
        self.reusable = False
        """True if the last response ended cleanly and both sides keep the connection."""
        self.reason = b""
        """The reason phrase of the last response."""
        self._transport: asyncio.Transport | None = None
        self._exchange: Exchange | None = None
        self._parser: ResponseParser | None = None
        self._gathered: Arrivals | None = None
        """Where a captured body goes, once its head is known."""
        self._paused = False

    def send(self, exchange: Exchange, data: bytes, *, no_body: bool = False) -> None:
        """Writes one request; the exchange gets what comes back. `no_body`: a HEAD request."""
        transport = self._transport
        if transport is None or self.closed:
            exchange.finish(End.CLOSED, now_s(), "the connection was closed before the request was written")
            return
        self._exchange = exchange
        self._parser = ResponseParser(no_body=no_body)
        self.reusable = False
        exchange.started(now_s())
        transport.write(data)

    def abort(self) -> None:
        """Frees the socket at once."""
        self.closed = True
        self._exchange, self._gathered = None, None
        if self._transport is not None:
            self._transport.abort()

    def resume(self) -> None:
        """Reads on once a streamed response's queue has drained."""
        if self._paused and self._transport is not None and not self.closed:
            if self._exchange is not None and self._exchange.buffered > LOW_WATER:
                return
            self._paused = False
            self._transport.resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        # uvloop's transports do not derive from asyncio.Transport
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Called by the loop: stamps, parses, hands on. Runs once per token: a captured body's plain read stays in this
        frame.
        """
        at_s = monotonic()  # loadgen.clock.now_s without its frame
        parser, gathered = self._parser, self._gathered
        if gathered is None or parser is None:
            self._received(at_s, data)
            return
        try:
            parser.feed_raw(data)
        except FRAMING_ERRORS as error:
            if not parser.complete:
                self._broken(at_s, f"not valid HTTP/1.1: {error}")
                return
            parser.surplus = True
        parts = parser.parts
        if len(parts) == 1 and not parser.complete:
            block = parts.pop()
            gathered.times_s.append(at_s)
            gathered.blocks.append(block)
            gathered.size += len(block)
            if gathered.size > MAX_CAPTURE:
                self._broken(at_s, f"the body is longer than {MAX_CAPTURE} bytes")
        else:
            self._taken(at_s, parser, parser.take())

    def _received(self, at_s: float, data: bytes) -> None:
        """A read of a head, of a streamed body, or of nothing that was asked for."""
        exchange, parser = self._exchange, self._parser
        if exchange is None or exchange.done or parser is None:
            self.abort()  # bytes that nobody asked for: the connection cannot be trusted
            return
        arrivals = exchange.arrivals
        if arrivals.first_byte_s is None:
            arrivals.first_byte_s = at_s
            exchange.watch()
        try:
            body = parser.feed(data)
        except ValueError as error:
            self._broken(at_s, str(error))
            return
        if arrivals.status is None and parser.status is not None:
            self.reason = parser.reason
            exchange.head(parser.status, parser.headers)
            self._gathered = arrivals if exchange.capture else None
        self._taken(at_s, parser, body)

    def _taken(self, at_s: float, parser: ResponseParser, body: bytes) -> None:
        exchange = self._exchange
        if exchange is None:
            return
        if body:
            exchange.block(at_s, body)
        if parser.complete:
            self._finish(exchange, parser, at_s)
        elif not exchange.capture and exchange.buffered > HIGH_WATER:
            self._pause()

    def eof_received(self) -> bool:
        """Called by the loop when the server closed its side: the end of a close-delimited body, else a break. False
        closes ours too.
        """
        self._lost(None)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop when the socket is gone."""
        self._lost(exc)
        self.closed = True

    def _finish(self, exchange: Exchange, parser: ResponseParser, at_s: float) -> None:
        self._exchange, self._parser, self._gathered = None, None, None
        self.reusable = parser.keep_alive and not parser.surplus and not self.closed
        self.used = True
        exchange.finish(End.COMPLETE, at_s)

    def _broken(self, at_s: float, error: str) -> None:
        exchange = self._exchange
        self.abort()
        if exchange is not None:
            exchange.finish(End.PROTOCOL, at_s, error)

    def _lost(self, exc: Exception | None) -> None:
        exchange, self._exchange, self._gathered = self._exchange, None, None
        self.reusable = False
        if exchange is None or exchange.done:
            return
        at_s = now_s()
        if self._parser is not None and self._parser.close_delimited and exc is None:
            exchange.finish(End.COMPLETE, at_s)
        else:
            what = f"{type(exc).__name__}: {exc}" if exc else "the server closed the connection"
            where = "before any byte of the response" if exchange.arrivals.first_byte_s is None else "in the response"
            exchange.finish(End.CLOSED, at_s, f"{what} {where}")

    def _pause(self) -> None:
        if not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
