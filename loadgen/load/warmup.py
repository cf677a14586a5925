"""Warm-up: a level's own warm-up prompts at the level's concurrency, kept out of everything that is measured."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loadgen.load.client import TransportFactory
from loadgen.load.crew import Crew
from loadgen.load.record import Outcome, RequestRecord
from loadgen.load.request import PreparedRequest, prepare
from loadgen.load.shape import WindowHooks
from loadgen.load.target import Target
from loadgen.workloads.base import Prompt


@dataclass(frozen=True)
class Warmup:
    """What a warm-up saw."""

    records: tuple[RequestRecord, ...]
    mean_request_s: float
    """Mean seconds of an OK request, send to end; 0.0 if none was OK."""
    errors: tuple[str, ...]
    """`outcome: message` of each request that was not OK, without repeats."""
    interrupted: bool = False


async def run_warmup(
    target: Target,
    prompts: Sequence[Prompt],
    concurrency: int,
    *,
    cancel: asyncio.Event | None = None,
    transport_factory: TransportFactory | None = None,
) -> Warmup:
    """Sends every prompt once, never more than `concurrency` at a time (case C51)."""
    requests = iter([prepare(prompt, target) for prompt in prompts])
    async with Crew(target, WindowHooks(), cancel, transport_factory) as crew:
        for number in range(min(concurrency, len(prompts))):
            crew.spawn(_worker(crew, requests, number))
        await crew.wait(lambda: not crew.tasks, "ramp")
        interrupted = crew.cancelled
    records = tuple(crew.collector.records)
    seconds = [r.end_s - r.start_s for r in records if r.outcome is Outcome.OK]
    failed = dict.fromkeys(f"{r.outcome}: {r.error or 'no message'}" for r in records if r.outcome is not Outcome.OK)
    return Warmup(records, sum(seconds) / len(seconds) if seconds else 0.0, tuple(failed), interrupted)


async def _worker(crew: Crew, requests: Iterator[PreparedRequest], number: int) -> None:
    for request in requests:
        await crew.request(request, number)
