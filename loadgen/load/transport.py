"""The transport under `httpx2.AsyncClient`: one connection per request in flight, bytes stamped as they arrive.

`request.extensions["arrivals"]` set to an `Arrivals` asks for capture: the call returns when the whole body is there,
gathered without waking a task per read. Otherwise the response is an ordinary httpx2 stream. In both cases
`response.extensions["arrivals"]` holds the stamps. `request.extensions["timeouts"]` may hold a `Timeouts`, and
`request.extensions["wire"]` a `Wire`, which is then sent in place of the request's own method, headers and content.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx2

from loadgen.clock import now_s
from loadgen.load.arrivals import TIMEOUT_ENDS, Arrivals, End
from loadgen.load.connection import Connection
from loadgen.load.exchange import Exchange
from loadgen.load.target import Timeouts

IDLE_LIMIT_S = 3.0
"""A connection that was idle for longer is not used again: vLLM closes idle ones after 5 s (case C39)."""

_Key = tuple[str, str, int]
"""Scheme, host, port."""


@dataclass(frozen=True, slots=True)
class Wire:
    """A request whose bytes were made beforehand: forming them anew would cost more than all else between two requests.
    `body` ends `data`; a transport that is not ours sends it with the request's own headers.
    """

    data: bytes
    body: bytes
    route: _Key


class StampedTransport(httpx2.AsyncBaseTransport):
    """HTTP/1.1 over TCP or TLS. Not for use from several event loops."""

    def __init__(self, ssl_context: ssl.SSLContext | None = None, timeouts: Timeouts | None = None) -> None:
        self._ssl_context = ssl_context
        self._timeouts = timeouts
        self._idle: dict[_Key, list[Connection]] = {}
        self._busy: set[Connection] = set()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response; its `extensions["arrivals"]` holds the stamps. Raises httpx2's transport errors.

        A kept connection that dies before any byte of the response is the server's idle close racing our write: the
        request is then sent once more on a fresh one, and `sent_s` is that second write.
        """
        wanted = request.extensions.get("arrivals")
        capture = isinstance(wanted, Arrivals)
        arrivals = wanted if isinstance(wanted, Arrivals) else Arrivals()
        limits = self._limits(request)
        wire = request.extensions.get("wire")
        data, key = (
            (wire.data, wire.route) if isinstance(wire, Wire) else (await _request_bytes(request), route_of(request))
        )
        while True:
            connection = await self._acquire(key, request, arrivals, limits)
            exchange = Exchange(arrivals, limits, capture=capture)
            raced = connection.used
            self._busy.add(connection)
            try:
                connection.send(exchange, data, no_body=request.method == "HEAD")
                await exchange.wait()
            except BaseException as error:
                exchange.finish(End.CANCELLED, now_s(), type(error).__name__)
                self._drop(connection)
                raise
            if not (raced and arrivals.ended is End.CLOSED and arrivals.first_byte_s is None):
                break
            self._drop(connection)
            arrivals.reopen()
        if exchange.done and arrivals.ended is not End.COMPLETE and (capture or arrivals.status is None):
            self._drop(connection)
            raise _error(arrivals, request)
        return self._response(arrivals, exchange, connection, key, request)

    async def aclose(self) -> None:
        """Every socket is closed."""
        for connection in [*self._busy, *(c for kept in self._idle.values() for c in kept)]:
            connection.abort()
        self._busy.clear()
        self._idle.clear()
        await asyncio.sleep(0)  # lets the loop close the sockets

    def release(self, connection: Connection, key: _Key) -> None:
        """Keeps a connection for the next request, or frees it."""
        self._busy.discard(connection)
        if not connection.reusable or connection.closed:
            connection.abort()
            return
        connection.idle_since_s = now_s()
        kept = self._idle.setdefault(key, [])
        while kept and (kept[0].closed or connection.idle_since_s - kept[0].idle_since_s > IDLE_LIMIT_S):
            kept.pop(0).abort()
        kept.append(connection)

    def _drop(self, connection: Connection) -> None:
        self._busy.discard(connection)
        connection.abort()

    def _limits(self, request: httpx2.Request) -> Timeouts:
        own = request.extensions.get("timeouts", self._timeouts)
        if isinstance(own, Timeouts):
            return own
        asked = request.extensions.get("timeout") or {}
        return Timeouts(connect_s=asked.get("connect"), first_byte_s=asked.get("read"), idle_s=asked.get("read"))

    async def _acquire(self, key: _Key, request: httpx2.Request, arrivals: Arrivals, limits: Timeouts) -> Connection:
        kept = self._idle.get(key, [])
        # after a lost race every kept connection is suspect
        while kept and not arrivals.attempts:
            connection = kept.pop()
            if not connection.closed and now_s() - connection.idle_since_s <= IDLE_LIMIT_S:
                return connection
            connection.abort()
        return await self._connect(key, arrivals, limits, request)

    async def _connect(self, key: _Key, arrivals: Arrivals, limits: Timeouts, request: httpx2.Request) -> Connection:
        scheme, host, port = key
        arrivals.sent_s = now_s()  # overwritten by the write; stands if there never is one
        context = self._context() if scheme == "https" else None
        try:
            async with asyncio.timeout(limits.connect_s):
                _, connection = await asyncio.get_running_loop().create_connection(Connection, host, port, ssl=context)
        except TimeoutError:
            arrivals.end(End.CONNECT_TIMEOUT, now_s(), f"no connection to {host}:{port} within {limits.connect_s} s")
            raise _error(arrivals, request) from None
        except (OSError, ssl.CertificateError) as error:
            arrivals.end(End.CONNECT_FAILED, now_s(), f"no connection to {host}:{port}: {error}")
            raise _error(arrivals, request) from error
        except BaseException as error:
            arrivals.end(End.CANCELLED, now_s(), type(error).__name__)
            raise
        return connection

    def _context(self) -> ssl.SSLContext:
        if self._ssl_context is None:
            self._ssl_context = ssl.create_default_context()
        return self._ssl_context

    def _response(
        self, arrivals: Arrivals, exchange: Exchange, connection: Connection, key: _Key, request: httpx2.Request
    ) -> httpx2.Response:
        stream: httpx2.AsyncByteStream
        reason = connection.reason
        if exchange.capture:
            self.release(connection, key)
            stream = _Captured(arrivals)
        else:
            stream = _Live(self, exchange, connection, key, request)
        return httpx2.Response(
            status_code=arrivals.status or 0,
            headers=arrivals.headers,
            stream=stream,
            extensions={"arrivals": arrivals, "http_version": b"HTTP/1.1", "reason_phrase": reason},
        )


class _Captured(httpx2.AsyncByteStream):
    """A body that is already there."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for block in self._arrivals.blocks:
            yield block


class _Live(httpx2.AsyncByteStream):
    """A body as it comes, with back-pressure."""

    def __init__(
        self,
        transport: StampedTransport,
        exchange: Exchange,
        connection: Connection,
        key: _Key,
        request: httpx2.Request,
    ) -> None:
        self._owner, self._exchange, self._connection = transport, exchange, connection
        self._key, self._request = key, request
        self._closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        exchange = self._exchange
        while True:
            if exchange.buffer:
                block = exchange.take()
                self._connection.resume()
                yield block
            elif exchange.done:
                if exchange.arrivals.ended is not End.COMPLETE:
                    raise _error(exchange.arrivals, self._request)
                return
            else:
                await exchange.wait()

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._exchange.finish(End.CANCELLED, now_s(), "the response was closed before its end")
        self._owner.release(self._connection, self._key)


def _error(arrivals: Arrivals, request: httpx2.Request) -> httpx2.TransportError:
    """The httpx2 exception for how an exchange ended."""
    text = arrivals.error or arrivals.ended.value
    if arrivals.ended is End.CONNECT_TIMEOUT:
        return httpx2.ConnectTimeout(text, request=request)
    if arrivals.ended in TIMEOUT_ENDS:
        return httpx2.ReadTimeout(text, request=request)
    if arrivals.ended is End.CONNECT_FAILED:
        return httpx2.ConnectError(text, request=request)
    if arrivals.ended is End.PROTOCOL:
        return httpx2.RemoteProtocolError(text, request=request)
    return httpx2.ReadError(text, request=request)


def route_of(request: httpx2.Request) -> _Key:
    """Where the request goes. Raises httpx2.UnsupportedProtocol for anything but http and https."""
    url = request.url
    if url.scheme not in ("http", "https"):
        raise httpx2.UnsupportedProtocol(f"{url.scheme!r} is not http or https.", request=request)
    return url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80)


def head_bytes(request: httpx2.Request) -> bytes:
    """The request line and headers as they go on the wire, without the body's length and the line that ends them."""
    lines = [request.method.encode() + b" " + request.url.raw_path + b" HTTP/1.1"]
    for name, value in request.headers.raw:
        if name.lower() in (b"transfer-encoding", b"content-length"):
            continue
        if b"\r" in value or b"\n" in value:
            raise httpx2.LocalProtocolError(f"the header {name.decode('latin-1')} holds a line break", request=request)
        lines.append(name + b": " + value)
    return b"\r\n".join([*lines, b""])


async def _request_bytes(request: httpx2.Request) -> bytes:
    """The whole request as it goes on the wire, its body always with a length."""
    body = await request.aread()
    length = b""
    if body or request.method in ("POST", "PUT", "PATCH"):
        length = b"Content-Length: %d\r\n" % len(body)
    return b"%b%b\r\n%b" % (head_bytes(request), length, body)
