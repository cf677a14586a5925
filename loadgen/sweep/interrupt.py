"""Ctrl-C as an event that everything that waits can be raced against."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class InterruptedRunError(Exception):
    """The user asked to stop; what was measured stands."""


async def unless_cancelled(cancel: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    """The work's result; InterruptedRunError as soon as `cancel` is set and the work has cleaned up behind itself."""
    task = asyncio.ensure_future(work)
    stop = asyncio.ensure_future(cancel.wait())
    try:
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise InterruptedRunError("interrupted")
    finally:
        stop.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
