"""What every load loop shares. Standard library only: it runs in each client's own environment."""

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Load:
    """A closed loop: `concurrency` requests in flight until `requests` have ended."""

    url: str
    """Base URL without `/v1`."""
    concurrency: int
    requests: int
    max_tokens: int


@dataclass(frozen=True)
class Seen:
    """What a loop saw of one request."""

    tag: str
    """`bench-` and the request's number, as it stood in the prompt."""
    ttft_s: float | None
    """By the client's own definition and clock; None if the request failed."""


def tag(number: int) -> str:
    """What the server logs a request under."""
    return f"bench-{number:06d}"


def prompt(number: int) -> str:
    """A prompt that names its request; about 32 tokens, unique from its first word."""
    return (
        f"{tag(number)} Name the rivers that flow through the old town, from north to south, and say what each is for."
    )


def body(number: int, max_tokens: int) -> dict[str, object]:
    """The chat request of a loop that forms its own."""
    return {
        "model": "mock",
        "messages": [{"role": "user", "content": prompt(number)}],
        "max_tokens": max_tokens,
        "temperature": 0.0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def cpu_seconds() -> float:
    """User and system CPU seconds of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main(run: Callable[[Load], list[Seen]]) -> None:
    """Reads the load from the command line, runs it and writes what was seen, with the CPU time of the loop alone."""
    parser = argparse.ArgumentParser()
    for name in ("--url", "--out"):
        parser.add_argument(name, required=True)
    for name in ("--concurrency", "--requests", "--max-tokens"):
        parser.add_argument(name, required=True, type=int)
    args = parser.parse_args()
    load = Load(args.url, args.concurrency, args.requests, args.max_tokens)
    cpu, wall = cpu_seconds(), time.monotonic()
    seen = run(load)
    result = {
        "cpu_s": cpu_seconds() - cpu,
        "wall_s": time.monotonic() - wall,
        "ttft_s": {one.tag: one.ttft_s for one in seen},
    }
    Path(args.out).write_text(json.dumps(result), encoding="utf-8")
    failed = sum(one.ttft_s is None for one in seen)
    if failed or len(seen) != load.requests:
        sys.stderr.write(f"{failed} of {len(seen)} requests failed; {load.requests} were asked for\n")
        sys.exit(1)
