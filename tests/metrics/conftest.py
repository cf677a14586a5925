"""Snapshots from real captures and from lines written in a test, and a real server that answers as told."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from loadgen.metrics.parse import Snapshot, parse

CAPTURES = Path(__file__).parent.parent / "data" / "captures"


@pytest.fixture
def captures() -> Path:
    return CAPTURES


@pytest.fixture
def capture() -> Callable[[str], Snapshot]:
    def read(name: str) -> Snapshot:
        return parse((CAPTURES / name).read_bytes())

    return read


@pytest.fixture
def snapshot() -> Callable[..., Snapshot]:
    """Makes a snapshot of the lines given, with one vLLM gauge so that it counts as a vLLM body."""

    def make(*lines: str) -> Snapshot:
        return parse("\n".join(("vllm:num_requests_running 0", *lines)) + "\n")

    return make


@dataclass
class MetricsServer:
    """Answers each path with what `answers` says: (status, headers, body), or a list of them, the last one for ever."""

    url: str = ""
    answers: dict[str, list[tuple[int, dict[str, str], str]]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    silent: bool = False

    def body(self, *bodies: str, path: str = "/metrics") -> None:
        self.answers[path] = [(200, {"Content-Type": "text/plain; version=0.0.4"}, body) for body in bodies]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode("latin-1").split("\r\n")
                headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
                path = lines[0].split(" ")[1]
                self.asked.append((path, headers))
                if self.silent:
                    await asyncio.sleep(30)
                queue = self.answers.get(path, [(404, {}, "no such page")])
                status, extra, body = queue.pop(0) if len(queue) > 1 else queue[0]
                sent = "".join(f"{name}: {value}\r\n" for name, value in extra.items())
                payload = body.encode()
                writer.write(f"HTTP/1.1 {status} X\r\n{sent}Content-Length: {len(payload)}\r\n\r\n".encode() + payload)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@pytest.fixture
async def server() -> AsyncIterator[MetricsServer]:
    told = MetricsServer()
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(told.serve(reader, writer)))

    listener = await asyncio.start_server(accept, "127.0.0.1", 0)
    told.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    yield told
    listener.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await listener.wait_closed()
