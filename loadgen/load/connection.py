"""One HTTP/1.1 connection as an asyncio protocol: stamps each read, then parses it."""

import asyncio
from typing import cast

from loadgen.clock import now_s
from loadgen.load.arrivals import End
from loadgen.load.exchange import HIGH_WATER, LOW_WATER, MAX_CAPTURE, Exchange
from loadgen.load.http1 import ResponseParser


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
        self._exchange = None
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
        """Called by the loop: stamps, parses, hands on."""
        at_s = now_s()
        exchange, parser = self._exchange, self._parser
        if exchange is None or exchange.done or parser is None:
            self.abort()  # bytes that nobody asked for: the connection cannot be trusted
            return
        exchange.last_s = at_s
        if exchange.arrivals.first_byte_s is None:
            exchange.arrivals.first_byte_s = at_s
            exchange.watch()
        try:
            body = parser.feed(data)
        except ValueError as error:
            self._fail(exchange, at_s, str(error))
            return
        if exchange.arrivals.status is None and parser.status is not None:
            self.reason = parser.reason
            exchange.head(parser.status, parser.headers)
        if body:
            exchange.block(at_s, body)
        if parser.complete:
            self._finish(exchange, parser, at_s)
        elif exchange.capture:
            if exchange.arrivals.size > MAX_CAPTURE:
                self._fail(exchange, at_s, f"the body is longer than {MAX_CAPTURE} bytes")
        elif exchange.buffered > HIGH_WATER:
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
        self._exchange, self._parser = None, None
        self.reusable = parser.keep_alive and not parser.surplus and not self.closed
        self.used = True
        exchange.finish(End.COMPLETE, at_s)

    def _fail(self, exchange: Exchange, at_s: float, error: str) -> None:
        self.abort()
        exchange.finish(End.PROTOCOL, at_s, error)

    def _lost(self, exc: Exception | None) -> None:
        exchange, self._exchange = self._exchange, None
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
