"""A load process as a parent without asyncio sees it: under Locust, whose gevent makes its calls cooperate."""

import contextlib
import subprocess
import sys
import threading

from loadgen.load.workers.messages import HEAD_SIZE, ToChild, ToParent, for_parent, frame, length_of
from loadgen.load.workers.pool import MODULE

END_S = 5.0


class BlockingWorker:
    """One load process. `receive` from one thread, `send` from any."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", MODULE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self._lock = threading.Lock()

    def send(self, message: ToChild) -> None:
        """Tells it something; nothing happens if it has gone, since `receive` says so."""
        data = memoryview(frame(message))
        with self._lock, contextlib.suppress(OSError, ValueError):
            while data and self._process.stdin is not None:
                data = data[self._process.stdin.write(data) or 0 :]

    def receive(self) -> ToParent | None:
        """Its next message; None once it has ended."""
        head = self._exactly(HEAD_SIZE)
        data = None if head is None else self._exactly(length_of(head))
        return None if data is None else for_parent(data)

    def close(self) -> None:
        """It is gone."""
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _exactly(self, size: int) -> bytes | None:
        data, pipe = b"", self._process.stdout
        while len(data) < size:
            try:
                block = pipe.read(size - len(data)) if pipe is not None else b""
            except (OSError, ValueError):
                return None
            if not block:
                if pipe is not None:
                    pipe.close()  # here, since only the one who reads knows that nobody does any more
                return None
            data += block
        return data
