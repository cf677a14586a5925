"""One HTTP/1.1 connection as an asyncio protocol: stamps each read, then parses it."""

import asyncio
from typing import cast

import httptools

from loadgen.clock import now_s
from loadgen.load.arrivals import End
from loadgen.load.exchange import HIGH_WATER, LOW_WATER, MAX_CAPTURE, Exchange

MAX_HEAD = 64 * 1024


class Connection(asyncio.Protocol):
    """A connection that carries one exchange after another."""

    def __init__(self) -> None:
        self.closed = False
        self.idle_since_s = 0.0
        self.used = False
        """True once a response was completed on it: only then may a loss be the keep-alive race."""
        self._transport: asyncio.Transport | None = None
        self._exchange: Exchange | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._headers: list[tuple[bytes, bytes]] = []
        self._reason = b""
        self._parts: list[bytes] = []
        self._head_size = 0
        self._head_done = False
        self._close_delimited = False
        self._no_body = False
        self._complete = False
        self._keep_alive = False
        self._surplus = False
        self._paused = False
        self.reusable = False
        """True if the last response ended cleanly and both sides keep the connection."""

    @property
    def reason(self) -> bytes:
        """The reason phrase of the current response."""
        return self._reason

    def send(self, exchange: Exchange, data: bytes, *, no_body: bool = False) -> None:
        """Writes one request; the exchange gets what comes back. `no_body`: a HEAD request."""
        transport = self._transport
        if transport is None or self.closed:
            exchange.finish(End.CLOSED, now_s(), "the connection was closed before the request was written")
            return
        self._exchange = exchange
        self._parser = httptools.HttpResponseParser(self)
        self._headers, self._reason = [], b""
        self._head_size, self._head_done, self._complete = 0, False, False
        self._no_body, self.reusable = no_body, False
        self._keep_alive, self._surplus = False, False
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
        exchange = self._exchange
        if self._paused and self._transport is not None and not self.closed:
            if exchange is not None and exchange.buffered > LOW_WATER:
                return
            self._paused = False
            self._transport.resume_reading()

    # -- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        # uvloop's transports do not derive from asyncio.Transport
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Stamps, parses, hands on."""
        at_s = now_s()
        exchange = self._exchange
        if exchange is None or exchange.done or self._parser is None:
            self.abort()  # bytes that nobody asked for: the connection cannot be trusted
            return
        exchange.last_s = at_s
        if exchange.arrivals.first_byte_s is None:
            exchange.arrivals.first_byte_s = at_s
            exchange.watch()
        if not self._head_done:
            self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(exchange, at_s, f"not valid HTTP/1.1: {error}")
            return
        parts = self._parts
        if parts:
            exchange.block(at_s, parts[0] if len(parts) == 1 else b"".join(parts))
            parts.clear()
        if self._complete:
            self._finish(exchange, at_s)
        elif not exchange.capture and exchange.buffered > HIGH_WATER:
            self._pause()
        elif not self._head_done and self._head_size > MAX_HEAD:
            self._fail(exchange, at_s, f"the response's head is longer than {MAX_HEAD} bytes")
        elif exchange.capture and exchange.arrivals.size > MAX_CAPTURE:
            self._fail(exchange, at_s, f"the body is longer than {MAX_CAPTURE} bytes")

    def eof_received(self) -> bool:
        """The server has closed its side: the end of a close-delimited body, else a break. False closes ours."""
        self._lost(None)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop when the socket is gone."""
        self._lost(exc)
        self.closed = True

    # -- httptools callbacks

    def on_status(self, status: bytes) -> None:
        """Reason phrase, perhaps in pieces."""
        if not self._complete:
            self._reason += status

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header (a trailer after the body is dropped)."""
        if not self._head_done:
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is whole; an interim 1xx head is dropped, a second response nobody asked for too."""
        if self._parser is None or self._exchange is None:
            return
        if self._complete:
            self._surplus = True
            return
        status = self._parser.get_status_code()
        if 100 <= status < 200:
            return
        self._head_done = True
        arrivals = self._exchange.arrivals
        arrivals.status, arrivals.headers = status, self._headers
        names = {name.lower() for name, _ in self._headers}
        has_body = not self._no_body and status not in (204, 304)
        self._close_delimited = has_body and not names & {b"content-length", b"transfer-encoding"}
        # asked here: llhttp forgets the answer once the message is complete
        self._keep_alive = self._parser.should_keep_alive() and not self._close_delimited
        if self._no_body:
            self._complete = True
        self._exchange.head()

    def on_body(self, body: bytes) -> None:
        """Body bytes without chunk framing."""
        if not self._complete:
            self._parts.append(body)

    def on_message_complete(self) -> None:
        """The response has ended, unless it was an interim one."""
        if self._head_done:
            self._complete = True
        else:
            self._headers, self._reason = [], b""

    # -- ends

    def _finish(self, exchange: Exchange, at_s: float) -> None:
        self._exchange, self._parser = None, None
        self.reusable = self._keep_alive and not self._surplus and not self.closed and not self._no_body
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
        if self._head_done and self._close_delimited and exc is None:
            exchange.finish(End.COMPLETE, at_s)
        else:
            what = f"{type(exc).__name__}: {exc}" if exc else "the server closed the connection"
            where = "before any byte of the response" if exchange.arrivals.first_byte_s is None else "in the response"
            exchange.finish(End.CLOSED, at_s, f"{what} {where}")

    def _pause(self) -> None:
        if not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
