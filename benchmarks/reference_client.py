"""The limit: a plain asyncio protocol on uvloop, no HTTP library, request bytes made beforehand, `data: ` counted.

It reads nothing but what the mock server sends; every ratio of the benchmark refers to it.
"""

import asyncio
import json
import time
from collections.abc import Iterator
from typing import cast
from urllib.parse import urlsplit

import uvloop

from benchmarks.loops.common import Load, Seen, body, main, tag

SECOND_EVENT = 2
"""The first event holds the role, the second the first token."""


class Stream(asyncio.Protocol):
    """One connection: sends request after request until none is left."""

    def __init__(self, requests: Iterator[tuple[int, bytes]], seen: list[Seen]) -> None:
        self.finished = asyncio.get_running_loop().create_future()
        self._requests = requests
        self._seen = seen
        self._number = -1
        self._sent_s = 0.0
        self._first_s: float | None = None
        self._events = 0
        self._times_s: list[float] = []
        self._tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's own class
        self._next()

    def data_received(self, data: bytes) -> None:
        """Stamps, counts, goes on."""
        at_s = time.monotonic()
        self._times_s.append(at_s)
        data = self._tail + data
        self._events += data.count(b"data: ")
        # five bytes cannot hold `data: `, so nothing is counted twice
        self._tail = data[-5:]
        if self._first_s is None and self._events >= SECOND_EVENT:
            self._first_s = at_s
        if data.endswith(b"0\r\n\r\n"):
            ttft_s = None if self._first_s is None else self._first_s - self._sent_s
            self._seen.append(Seen(tag(self._number), ttft_s))
            self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop: a loss in mid-stream ends the measurement."""
        if not self.finished.done():
            self.finished.set_exception(exc or ConnectionError("the server closed the connection"))

    def _next(self) -> None:
        following = next(self._requests, None)
        if following is None:
            self.finished.set_result(None)
            self._transport.close()
            return
        self._number, data = following
        self._events, self._first_s, self._times_s, self._tail = 0, None, [], b""
        self._sent_s = time.monotonic()
        self._transport.write(data)


def _request(host: str, number: int, max_tokens: int) -> bytes:
    text = json.dumps(body(number, max_tokens)).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n"
    return head.encode() + b"content-length: %d\r\n\r\n" % len(text) + text


async def _run(load: Load) -> list[Seen]:
    at = urlsplit(load.url)
    host, port = at.hostname or "127.0.0.1", at.port or 80
    seen: list[Seen] = []
    requests = iter([(n, _request(at.netloc, n, load.max_tokens)) for n in range(load.requests)])
    loop = asyncio.get_running_loop()
    made = await asyncio.gather(
        *(loop.create_connection(lambda: Stream(requests, seen), host, port) for _ in range(load.concurrency))
    )
    await asyncio.gather(*(stream.finished for _, stream in made))
    return seen


if __name__ == "__main__":
    main(lambda load: uvloop.run(_run(load)))
