"""One HTTP/1.1 response from its bytes: head, body without framing, end."""

import httptools

MAX_HEAD = 64 * 1024
FRAMING_ERRORS = (httptools.HttpParserError, httptools.HttpParserUpgrade)


class ResponseParser:
    """Feed it reads; it holds the head, gives the body bytes of each read, and knows when the response is whole."""

    def __init__(self, *, no_body: bool = False) -> None:
        self.status: int | None = None
        """Set once the head is whole; an interim 1xx head is passed over."""
        self.headers: list[tuple[bytes, bytes]] = []
        self.reason = b""
        self.complete = False
        self.close_delimited = False
        """True if only the end of the connection ends the body."""
        self.keep_alive = False
        self.surplus = False
        """True if something followed the response that nobody asked for."""
        self.parts: list[bytes] = []
        """Body bytes of the read that was fed last, one entry per chunk of the framing."""
        self._no_body = no_body
        self._head_size = 0
        self._own_parts = 0
        # a bound C function: httptools calls it without a Python frame, which counts at one call per token
        self.on_body = self.parts.append
        self._parser = httptools.HttpResponseParser(self)
        self.feed_raw = self._parser.feed_data
        """Feeds a read of a body, for the hot path: what `feed` does but for the head's bound, errors and the join."""

    def feed(self, data: bytes) -> bytes:
        """The body bytes of this read, perhaps none. ValueError if it is not HTTP/1.1 or its head is too long."""
        if self.status is None:
            self._head_size += len(data)
        try:
            self.feed_raw(data)
        except FRAMING_ERRORS as error:
            if not self.complete:
                raise ValueError(f"not valid HTTP/1.1: {error}") from error
            self.surplus = True
        if self.status is None and self._head_size > MAX_HEAD:
            raise ValueError(f"the response's head is longer than {MAX_HEAD} bytes")
        return self.take()

    def take(self) -> bytes:
        """The parts, joined and cleared; what follows the response is left out."""
        parts = self.parts[: self._own_parts] if self.complete else self.parts
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        self.parts.clear()
        return body

    def on_status(self, status: bytes) -> None:
        """Called by httptools: the reason phrase, perhaps in pieces."""
        if self.status is None:
            self.reason += status

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by httptools: one header; trailers are dropped."""
        if self.status is None:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Called by httptools: the head is whole."""
        if self.complete:
            self.surplus = True
            return
        status = self._parser.get_status_code()
        if 100 <= status < 200:
            return
        self.status = status
        names = {name.lower() for name, _ in self.headers}
        has_body = not self._no_body and status not in (204, 304)
        self.close_delimited = has_body and not names & {b"content-length", b"transfer-encoding"}
        # asked here: llhttp forgets the answer once the message is complete
        self.keep_alive = self._parser.should_keep_alive() and not self.close_delimited and not self._no_body
        self.complete = self._no_body

    def on_message_complete(self) -> None:
        """Called by httptools: the end of the response, or of an interim one."""
        if self.status is not None:
            if not self.complete:
                self._own_parts = len(self.parts)
            self.complete = True
        else:
            self.headers.clear()
            self.reason = b""
