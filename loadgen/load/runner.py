"""The event loop of a load run: uvloop where it is installed, asyncio's own elsewhere."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_fast(work: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result, run on the fastest loop at hand."""
    with asyncio.Runner(loop_factory=fast_loop_factory()) as runner:
        return runner.run(work)


def fast_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's loop maker; None (asyncio's default) where uvloop cannot be imported, as on Windows."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
