"""A scripted server on a real socket: given byte blocks at given times, and what it saw."""

import asyncio
import contextlib
import itertools
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from loadgen.load.target import Target
from loadgen.workloads.base import Message, Prompt

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
DONE = b"data: [DONE]\n\n"


@dataclass
class Seen:
    """One request as the server got it."""

    number: int
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int

    def json(self) -> dict[str, Any]:
        return dict(json.loads(self.body))


class Reply:
    """Writes one response piece by piece."""

    def __init__(self, writer: asyncio.StreamWriter, server: "ScriptedServer") -> None:
        self.writer = writer
        self.server = server

    async def raw(self, data: bytes, pause_s: float = 0.0) -> None:
        if pause_s:
            await asyncio.sleep(pause_s)
        self.writer.write(data)
        await self.writer.drain()

    async def chunked(self, blocks: Sequence[bytes], gap_s: float = 0.0, head: bytes = HEAD) -> None:
        await self.raw(head + b"transfer-encoding: chunked\r\n\r\n")
        for block in blocks:
            await self.raw(b"%x\r\n%s\r\n" % (len(block), block), gap_s)
        await self.raw(b"0\r\n\r\n")

    async def whole(self, status: int, body: bytes, content_type: str = "application/json", extra: str = "") -> None:
        head = f"HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\ncontent-length: {len(body)}\r\n{extra}\r\n"
        await self.raw(head.encode() + body)


async def eventually(condition: Callable[[], bool], period_s: float = 0.005) -> None:
    """Returns once the condition holds."""
    for _ in itertools.count():
        if condition():
            return
        await asyncio.sleep(period_s)


Script = Callable[[Seen, Reply], Awaitable[bool | None]]
"""Answers one request; False closes the connection afterwards."""


@dataclass
class ScriptedServer:
    """Runs a script for each request; remembers requests, connections and disconnects."""

    script: Script
    host: str = "127.0.0.1"
    ssl_context: ssl.SSLContext | None = None
    idle_close_s: float | None = None
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    open_now: int = 0
    active: int = 0
    most_active: int = 0
    disconnects: int = 0
    """Connections that the client ended while a script ran."""
    port: int = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, self.host, 0, ssl=self.ssl_context, limit=1 << 22)
        self.port = self._server.sockets[0].getsockname()[1]
        self._tasks: set[asyncio.Task[None]] = set()

    async def stop(self) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.ssl_context else 'http'}://{host}:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        self.open_now += 1
        number = self.connections
        try:
            while (seen := await self._read(reader, number)) is not None:
                self.seen.append(seen)
                if await self._answer(seen, reader, writer) is False:
                    break
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self.open_now -= 1
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _answer(self, seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool | None:
        """Runs the script, and stops it once the client has gone."""
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        script = asyncio.ensure_future(self.script(seen, Reply(writer, self)))
        gone = asyncio.ensure_future(self._wait_gone(reader, script))
        try:
            await asyncio.wait({script, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not script.done():
                self.disconnects += 1
                return False
            try:
                return script.result()
            except ConnectionError:
                self.disconnects += 1
                return False
        finally:
            self.active -= 1
            script.cancel()
            gone.cancel()
            await asyncio.gather(script, gone, return_exceptions=True)

    async def _wait_gone(self, reader: asyncio.StreamReader, script: "asyncio.Future[bool | None]") -> None:
        # polls: a read would steal the next request's first bytes
        await eventually(lambda: script.done() or reader.exception() is not None or reader.at_eof())

    async def _read(self, reader: asyncio.StreamReader, connection: int) -> Seen | None:
        try:
            async with asyncio.timeout(self.idle_close_s):
                head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, TimeoutError, ConnectionError, ssl.SSLError):
            return None
        lines = head.decode().split("\r\n")
        method, path, _ = lines[0].split(" ")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        return Seen(len(self.seen), method, path, headers, body, connection)


StartServer = Callable[..., Awaitable[ScriptedServer]]


@pytest.fixture
async def start_server() -> AsyncIterator[StartServer]:
    servers: list[ScriptedServer] = []

    async def start(script: Script, **options: Any) -> ScriptedServer:
        server = ScriptedServer(script, **options)
        await server.start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        await server.stop()


class Chunks:
    """Builders of chat events, named as in the case list."""

    done = DONE

    @staticmethod
    def e(delta: dict[str, Any], finish: str | None = None, **extra: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return b"data: " + json.dumps({"choices": [choice], **extra}, ensure_ascii=False).encode() + b"\n\n"

    @classmethod
    def text(cls, content: str | None, **extra: Any) -> bytes:
        return cls.e({"content": content}, **extra)

    @classmethod
    def role(cls, content: str | None = "") -> bytes:
        return cls.e({"role": "assistant", "content": content})

    @classmethod
    def fin(cls, reason: str) -> bytes:
        return cls.e({}, reason)

    @staticmethod
    def usage(prompt: int, completion: int, **extra: Any) -> bytes:
        usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        return b"data: " + json.dumps({"choices": [], "usage": usage, **extra}).encode() + b"\n\n"

    @classmethod
    def reply(cls, words: int, prompt: int = 3) -> list[bytes]:
        """A whole good stream with one token an event."""
        events = [cls.text(f"w{i} ") for i in range(words)]
        return [cls.role(), *events, cls.fin("stop"), cls.usage(prompt, words), cls.done]


@pytest.fixture
def chunks() -> Chunks:
    return Chunks()


@pytest.fixture
def captures() -> Path:
    return Path(__file__).parent.parent / "data" / "captures"


def _prompts(count: int, max_tokens: int = 16) -> tuple[Prompt, ...]:
    return tuple(
        Prompt(prompt_id=f"p{i}", max_tokens=max_tokens, messages=(Message("user", f"question {i}"),))
        for i in range(count)
    )


@pytest.fixture
def make_prompts() -> Callable[..., tuple[Prompt, ...]]:
    return _prompts


@pytest.fixture
def target_of() -> Callable[..., Target]:
    def build(server: ScriptedServer, **options: Any) -> Target:
        return Target(url=server.url, model="m", **options)

    return build


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], Awaitable[None]]:
    async def wait(condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            await eventually(condition)

    return wait


@pytest.fixture
def server_type() -> type[ScriptedServer]:
    return ScriptedServer
