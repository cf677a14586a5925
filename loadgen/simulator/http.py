"""HTTP/1.1 on an asyncio Protocol: one `transport.write` per streamed event, handlers without a task each.

A handler gets an `HttpRequest` and an `Exchange` and returns at once; it answers now or later. Requests that a client
pipelines wait for the answer before them.
"""

import asyncio
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from typing import cast

import httptools

KEEP_ALIVE_S = 5.0
"""vLLM's VLLM_HTTP_TIMEOUT_KEEP_ALIVE: an idle connection is closed after this."""
MAX_BODY_BYTES = 64 * 1024 * 1024
MAX_PIPELINED = 16
"""Requests read ahead of the one being answered; reading pauses beyond that."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One parsed request; header names are lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


class Exchange:
    """One answer: either `respond` once, or `open_stream`, any number of `send`, and `close_stream`."""

    __slots__ = ("_chunked", "_connection", "_head_only", "_keep_alive", "gone", "on_drain", "on_gone")

    def __init__(self, connection: "Connection", keep_alive: bool, chunked: bool, head_only: bool = False) -> None:
        self._connection = connection
        self._keep_alive = keep_alive
        self._chunked = chunked
        self._head_only = head_only
        self.gone = False
        """True once the answer is complete or the client has left: nothing can be written any more."""
        self.on_gone: Callable[[], None] | None = None
        """Called once if the client leaves before the answer is complete."""
        self.on_drain: Callable[[], None] | None = None
        """Called when a congested connection takes bytes again."""

    @property
    def congested(self) -> bool:
        """True while the client reads too slowly: what is sent now would only pile up here."""
        return self._connection.congested

    def respond(
        self,
        status: int,
        body: bytes,
        content_type: str = "application/json",
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """Sends a whole answer; does nothing if the client has left."""
        if self.gone:
            return
        fields = [("content-length", str(len(body)))]
        if body:
            fields.append(("content-type", content_type))
        self._connection.write(self._head(status, (*fields, *headers)) + (b"" if self._head_only else body))
        self._finish()

    def open_stream(self, headers: tuple[tuple[str, str], ...] = ()) -> None:
        """Sends the head of an event stream, as vLLM does before it has a token."""
        if self.gone:
            return
        if not self._chunked:
            self._keep_alive = False
        fields = [("content-type", "text/event-stream; charset=utf-8"), ("vary", "Origin"), *headers]
        if self._chunked:
            fields.append(("transfer-encoding", "chunked"))
        self._connection.write(self._head(200, tuple(fields)))

    def send(self, data: bytes) -> None:
        """Writes one event as one chunk in one write."""
        if self.gone or not data:
            return
        self._connection.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def close_stream(self) -> None:
        """Ends the stream properly."""
        if self.gone:
            return
        if self._chunked:
            self._connection.write(b"0\r\n\r\n")
        self._finish()

    def cut(self) -> None:
        """Closes the connection where it stands: the client sees a truncated body."""
        if not self.gone:
            self._connection.hang_up()
            self.lost()

    def reset(self) -> None:
        """Drops the connection with unsent bytes: the client sees a reset."""
        if not self.gone:
            self._connection.reset()
            self.lost()

    def lost(self) -> None:
        """Nothing can be written any more; whoever waits for that is told once."""
        if not self.gone:
            self.gone = True
            if self.on_gone is not None:
                self.on_gone()

    def _head(self, status: int, fields: tuple[tuple[str, str], ...]) -> bytes:
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", f"date: {_http_date()}", "server: uvicorn"]
        lines += [f"{name}: {value}" for name, value in fields]
        if not self._keep_alive:
            lines.append("connection: close")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def _finish(self) -> None:
        self.gone = True
        self._connection.answered(self._keep_alive)


Handler = Callable[[HttpRequest, Exchange], None]
_Refusal = tuple[int, str]


@dataclass(slots=True)
class _Waiting:
    request: HttpRequest | _Refusal
    keep_alive: bool
    chunked: bool


class Connection(asyncio.Protocol):
    """One client connection: parses requests, hands them to the handler one at a time, in order."""

    def __init__(self, handler: Handler, connections: "set[Connection]", max_body: int = MAX_BODY_BYTES) -> None:
        self._handler = handler
        self._connections = connections
        self._max_body = max_body
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._waiting: deque[_Waiting] = deque()
        self._current: Exchange | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._refused = False
        self._closing = False
        self._dispatching = False
        self._reading_paused = False
        self.congested = False
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body = bytearray()

    # --- transport callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has come."""
        # A cast and no check: uvloop's transports are no subclass of asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has left; the exchange in progress is told."""
        self._connections.discard(self)
        self._transport = None
        self._stop_idle_timer()
        self._waiting.clear()
        if self._current is not None:
            self._current.lost()
            self._current = None

    def data_received(self, data: bytes) -> None:
        """Bytes of one or more requests."""
        if self._refused:
            return
        self._stop_idle_timer()
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._refuse(400, "Invalid HTTP request received.")
        self._dispatch()

    def pause_writing(self) -> None:
        """The client does not read fast enough."""
        self.congested = True

    def resume_writing(self) -> None:
        """The client reads again."""
        self.congested = False
        if self._current is not None and self._current.on_drain is not None:
            self._current.on_drain()

    # --- parser callbacks

    def on_message_begin(self) -> None:
        """A request starts."""
        self._url = b""
        self._headers = {}
        self._body = bytearray()

    def on_url(self, url: bytes) -> None:
        """A piece of the target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """All headers are in; a client that asks for leave to send its body gets it."""
        if self._headers.get("expect", "").lower() == "100-continue":
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, data: bytes) -> None:
        """A piece of the body."""
        if not self._refused and len(self._body) + len(data) > self._max_body:
            self._refuse(413, f"The request body is larger than {self._max_body} bytes.")
        if not self._refused:
            self._body += data

    def on_message_complete(self) -> None:
        """A request is whole."""
        if self._refused:
            return
        try:
            target = httptools.parse_url(self._url)
        except httptools.HttpParserInvalidURLError:
            self._refuse(400, "Invalid HTTP request received.")
            return
        request = HttpRequest(
            method=self._parser.get_method().decode("latin-1"),
            path=(target.path or b"/").decode("latin-1"),
            query=(target.query or b"").decode("latin-1"),
            headers=self._headers,
            body=bytes(self._body),
        )
        chunked = self._parser.get_http_version() == "1.1"
        self._waiting.append(_Waiting(request, bool(self._parser.should_keep_alive()), chunked))
        if len(self._waiting) >= MAX_PIPELINED and self._transport is not None and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()

    # --- for the exchange

    def write(self, data: bytes) -> None:
        """Hands bytes to the transport, unless it is gone."""
        if self._transport is not None:
            self._transport.write(data)

    def hang_up(self) -> None:
        """Closes once what was written has left."""
        self._closing = True
        if self._transport is not None:
            self._transport.close()

    def reset(self) -> None:
        """Closes at once; the zero linger time makes the kernel send a reset instead of a proper end."""
        self._closing = True
        if self._transport is not None:
            raw = self._transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()

    def answered(self, keep_alive: bool) -> None:
        """The current exchange is complete: the next one, an idle wait, or the end."""
        self._current = None
        if not keep_alive:
            self.hang_up()
        elif not self._dispatching:
            self._dispatch()

    def close_if_idle(self) -> bool:
        """True if nothing is in progress; then the connection is closed."""
        if self._current is None:
            self.hang_up()
            return True
        return False

    # --- inside

    def _refuse(self, status: int, message: str) -> None:
        self._refused = True
        self._waiting.append(_Waiting((status, message), keep_alive=False, chunked=True))

    def _dispatch(self) -> None:
        # A handler may answer at once: the loop (not recursion) then takes the next pipelined request.
        self._dispatching = True
        while self._current is None and self._waiting and not self._closing:
            waiting = self._waiting.popleft()
            request = waiting.request
            is_head = isinstance(request, HttpRequest) and request.method == "HEAD"
            exchange = self._current = Exchange(self, waiting.keep_alive, waiting.chunked, is_head)
            if isinstance(request, HttpRequest):
                self._handler(request, exchange)
            else:
                status, message = request
                exchange.respond(status, message.encode(), "text/plain; charset=utf-8")
        self._dispatching = False
        if self._reading_paused and not self._waiting and self._transport is not None and not self._closing:
            self._reading_paused = False
            self._transport.resume_reading()
        if self._current is None and not self._closing and self._idle_timer is None:
            self._idle_timer = self._loop.call_later(KEEP_ALIVE_S, self.hang_up)

    def _stop_idle_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None


class _DateLine:
    """The `date` header's value, made once a second."""

    def __init__(self) -> None:
        self._second = -1
        self._text = ""

    def __call__(self) -> str:
        now = int(time.time())
        if now != self._second:
            self._second, self._text = now, formatdate(now, usegmt=True)
        return self._text


_http_date = _DateLine()
