"""Runs one simulated server until it is told to end, or its engine dies."""

import asyncio
import gc
import logging
import resource
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loadgen.simulator.faults import Fault
from loadgen.simulator.launch import Launch
from loadgen.simulator.server import SimulatorServer
from loadgen.simulator.statlog import INTERVAL_S, StatLog, log_start

logger = logging.getLogger(__name__)

_LAST_WORDS_S = 0.2
"""Between the engine's death and the end of the process: the answers that say so leave in it."""


_FILES = 65535


@dataclass(frozen=True)
class ServeOptions:
    """Where to listen, and what to say about it."""

    host: str
    port: int
    fault: Fault | None
    arguments: Mapping[str, object]


def serve(launch: Launch, options: ServeOptions) -> bool:
    """True after SIGINT or SIGTERM, False if the engine died. UsageError if the port is taken."""
    _raise_file_limit()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_serve(launch, options))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def _raise_file_limit() -> None:
    """Each client needs a file; vLLM raises the soft limit likewise."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _serve(launch: Launch, options: ServeOptions) -> bool:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    server = SimulatorServer(launch.core, launch.times, launch.answers, launch.spec, options.fault)
    log_start(server, launch.core.config.notes, options.arguments)
    port = await server.start(options.host, options.port)
    logger.info("Starting vLLM API server 0 on http://%s:%d (simulated by loadgen)", options.host, port)
    logger.info("Application startup complete.")
    # What is there now stays: collections need not walk it, and so hold no step up.
    gc.freeze()
    ticker = asyncio.create_task(_tick(StatLog(server)))
    waits = [asyncio.create_task(told.wait()), asyncio.create_task(server.died.wait())]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for task in (ticker, *waits):
        task.cancel()
    if server.died.is_set():
        await asyncio.sleep(_LAST_WORDS_S)
    await server.stop()
    return not server.died.is_set()


async def _tick(log: StatLog) -> None:
    while True:
        await asyncio.sleep(INTERVAL_S)
        log.tick()
