"""httpx as its documentation shows it: one client with its shared pool, one `aiter_lines` step per line."""

import asyncio
import json
import time
from collections.abc import Iterator

import httpx2

from benchmarks.loops.common import Load, Seen, body, main, tag


async def _worker(client: httpx2.AsyncClient, numbers: Iterator[int], load: Load, seen: list[Seen]) -> None:
    for number in numbers:
        sent_s, first_s = time.monotonic(), None
        url = f"{load.url}/v1/chat/completions"
        async with client.stream("POST", url, json=body(number, load.max_tokens)) as response:
            async for line in response.aiter_lines():
                if not line.startswith("data: ") or line == "data: [DONE]":
                    continue
                choices = json.loads(line[6:])["choices"]
                if first_s is None and choices and choices[0]["delta"].get("content"):
                    first_s = time.monotonic()
        seen.append(Seen(tag(number), None if first_s is None else first_s - sent_s))


async def _run(load: Load) -> list[Seen]:
    seen: list[Seen] = []
    numbers = iter(range(load.requests))
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx2.AsyncClient(limits=limits, timeout=None, trust_env=False) as client:
        await asyncio.gather(*(_worker(client, numbers, load, seen) for _ in range(load.concurrency)))
    return seen


if __name__ == "__main__":
    main(lambda load: asyncio.run(_run(load)))
