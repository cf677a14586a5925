"""A simulator behind a URL tells itself, and the run says SIMULATED."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from loadgen.metrics.scrape import MetricsClient
from loadgen.store.codec import convert
from loadgen.store.folder import RunFolder
from loadgen.store.model import Manifest
from loadgen.sweep.simulated import mark_if_simulated

MANIFEST: dict[str, Any] = {
    "run_id": "r",
    "created_at": "",
    "loadgen_version": "",
    "argv": [],
    "engine": "url",
    "engine_reason": "",
    "simulated": False,
    "profiles": ["baseline"],
    "against": "baseline",
    "methods": {},
    "num_speculative_tokens": {},
    "conditions": [],
    "levels": [1],
    "repeats": 1,
    "sessions": 1,
    "seed": 1,
    "quick": False,
    "order": "together",
    "sampling": {},
    "hardware": {},
}


async def metrics_page(body: str) -> tuple[asyncio.Server, str]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
        writer.write(f"{head}Connection: close\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    return server, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("body", "simulated"),
    [("vllm:num_requests_running 0\nloadgen_sim_steps_total 4\n", True), ("vllm:num_requests_running 0\n", False)],
)
async def test_the_manifest_says_so(tmp_path: Path, body: str, simulated: bool) -> None:
    folder = RunFolder(tmp_path)
    folder.write_manifest(convert(MANIFEST, Manifest))
    server, url = await metrics_page(body)
    async with server, MetricsClient(url) as metrics:
        assert await mark_if_simulated(folder, metrics) is simulated
        assert await mark_if_simulated(folder, metrics) is False
    assert folder.manifest().simulated is simulated
