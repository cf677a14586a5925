"""A load process: takes jobs from its standard input until that ends. `python -m loadgen.load.workers.child`"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable

from loadgen.load.runner import run_fast
from loadgen.load.workers.elastic import ElasticLoad
from loadgen.load.workers.messages import (
    HEAD_SIZE,
    Fault,
    Job,
    Stop,
    ToChild,
    ToParent,
    Up,
    Users,
    Window,
    for_child,
    frame,
    length_of,
)


class _Inbox:
    """The parent's messages."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def next(self) -> ToChild | None:
        """The next one; None when the parent has gone. Cancelling it loses nothing."""
        try:
            head = await self._reader.readexactly(HEAD_SIZE)
            return for_child(await self._reader.readexactly(length_of(head)))
        except asyncio.IncompleteReadError:
            return None


async def _serve(out_fd: int) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    with os.fdopen(out_fd, "wb", buffering=0) as pipe:
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, pipe)
        writer = asyncio.StreamWriter(transport, protocol, None, loop)

        def tell(message: ToParent) -> None:
            writer.write(frame(message))

        tell(Up())
        inbox = _Inbox(reader)
        while (message := await inbox.next()) is not None:
            if isinstance(message, Job):
                try:
                    await _carry_out(message, inbox, tell)
                except Exception as fault:  # noqa: BLE001  # whatever it is, the parent has to hear of it
                    tell(Fault(f"{type(fault).__name__}: {fault}"))
                await writer.drain()
        writer.close()


async def _carry_out(job: Job, inbox: _Inbox, tell: Callable[[ToParent], None]) -> None:
    """One job, to the end of its last request."""
    async with ElasticLoad(job, tell) as load:
        obeying = asyncio.create_task(_obey(load, inbox))
        try:
            await load.over()
        finally:
            obeying.cancel()
            await asyncio.gather(obeying, return_exceptions=True)


async def _obey(load: ElasticLoad, inbox: _Inbox) -> None:
    """Does what the parent says, while requests drain too. A parent that has gone ends the load at once."""
    while (message := await inbox.next()) is not None:
        if isinstance(message, Users):
            load.users(message)
        elif isinstance(message, Window):
            await load.window(opens=message.opens)
        elif isinstance(message, Stop):
            load.stop(at_once=message.at_once)
    load.stop(at_once=True)


def main() -> None:
    """Runs until standard input ends. Ctrl-C reaches the whole process group; here the parent decides what it means."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # what a library prints must not get between the frames
    out_fd = os.dup(1)
    os.dup2(2, 1)
    run_fast(_serve(out_fd))


if __name__ == "__main__":
    main()
