"""One server as a child process: started, watched and ended through a guard (guard.py) that outlives loadgen."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadgen.errors import ServerError

_GUARD = Path(__file__).with_name("guard.py")
_TAIL_BYTES = 64 * 1024
_GUARD_SLACK_S = 10.0


@dataclass(frozen=True)
class Graces:
    """Seconds that a server gets after each signal before the next, harder one."""

    sigint_s: float = 30.0
    sigterm_s: float = 10.0
    sigkill_s: float = 10.0

    @property
    def total_s(self) -> float:
        """The longest that a stop may take."""
        return self.sigint_s + self.sigterm_s + self.sigkill_s


class ChildProcess:
    """A server in a session of its own. Whoever launches it calls `stop`; if loadgen dies first, the guard stops it."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        log_path: Path,
        cwd: Path | None = None,
        graces: Graces | None = None,
    ) -> None:
        self.command = tuple(command)
        self.log_path = log_path
        self.pid: int | None = None
        self.returncode: int | None = None
        self._environment = dict(environment)
        self._cwd = cwd
        self._graces = graces or Graces()
        self._guard: subprocess.Popen[bytes] | None = None
        self._reports: _Reports | None = None
        self._transport: asyncio.ReadTransport | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._log_start = 0

    async def launch(self) -> int:
        """The server's pid; ServerError if the command cannot be run. Cancelling leaves nothing running."""
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        self._log_start = self.log_path.stat().st_size if self.log_path.exists() else 0
        self._guard = _start_guard()
        try:
            self._reports = _Reports(self)
            # Not to be cancelled half-way: nobody would hear of the guard's end, and `stop` would wait for ever.
            self._connecting = asyncio.create_task(self._connect(self._guard))
            await asyncio.shield(self._connecting)
            self._send_order()
            return await asyncio.shield(self._protocol.started)
        except BaseException:
            self._let_go()
            raise

    async def exited(self) -> int:
        """The exit code, once the server's first process has ended (negative: the signal that ended it)."""
        return await asyncio.shield(self._protocol.ended)

    async def stop(self, on_signal: Callable[[str], None] | None = None) -> None:
        """Nothing of the server is left when this returns. If it is cancelled, the guard still goes on to the end.

        `on_signal` is told `SIGINT`, `SIGTERM`, `SIGKILL` as they are sent. Raises nothing for a dead server.
        """
        if self._guard is None or self._reports is None:
            return
        self._protocol.on_signal = on_signal
        self._let_go()
        try:
            async with asyncio.timeout(self._graces.total_s + _GUARD_SLACK_S):
                await asyncio.shield(self._protocol.gone)
        except TimeoutError:
            self._kill()
            await asyncio.wait({self._protocol.gone}, timeout=_GUARD_SLACK_S)
        self._tidy()

    def hurry(self) -> None:
        """SIGKILL for the server and all it started, whatever grace is left; a `stop` under way ends by that."""
        self._let_go()
        if self._guard:
            with contextlib.suppress(ProcessLookupError):
                self._guard.send_signal(signal.SIGUSR1)

    def new_log(self) -> str:
        """What this server wrote to its log so far."""
        with contextlib.suppress(OSError), self.log_path.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode("utf-8", errors="replace")
        return ""

    def log_tail(self, lines: int = 15) -> str:
        """The last lines that this server wrote; empty if it wrote none."""
        with contextlib.suppress(OSError), self.log_path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(self._log_start, size - _TAIL_BYTES))
            text = log.read().decode("utf-8", errors="replace")
            return "\n".join([line.rstrip() for line in text.splitlines() if line.strip()][-lines:])
        return ""

    def ending(self) -> str | None:
        """How the server ended, as a half-sentence; None while it runs."""
        if self.returncode is None:
            return None
        if self.returncode >= 0:
            return f"ended with exit code {self.returncode}"
        try:
            name = signal.Signals(-self.returncode).name
        except ValueError:
            name = f"signal {-self.returncode}"
        hint = " (out of memory? the kernel's killer sends it)" if name == "SIGKILL" else ""
        return f"was ended by {name}{hint}"

    async def _connect(self, guard: subprocess.Popen[bytes]) -> None:
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.connect_read_pipe(lambda: self._protocol, guard.stdout)

    @property
    def _protocol(self) -> "_Reports":
        if self._reports is None:
            raise ServerError("The server was not launched.")
        return self._reports

    def _send_order(self) -> None:
        order = {
            "command": list(self.command),
            "environment": self._environment,
            "log": str(self.log_path.absolute()),
            "cwd": str(self._cwd) if self._cwd else None,
            "graces": {
                "SIGINT": self._graces.sigint_s,
                "SIGTERM": self._graces.sigterm_s,
                "SIGKILL": self._graces.sigkill_s,
            },
        }
        if self._guard and self._guard.stdin:
            self._guard.stdin.write(json.dumps(order).encode() + b"\n")
            self._guard.stdin.flush()

    def _let_go(self) -> None:
        """Closes the guard's stdin: from here on it ends the server by itself, with or without us."""
        if self._guard and self._guard.stdin:
            with contextlib.suppress(OSError):
                self._guard.stdin.close()

    def _kill(self) -> None:
        """For a guard that does not answer: the group by SIGKILL, then the guard."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.pid is not None:
                os.killpg(self.pid, signal.SIGKILL)
        if self._guard:
            self._guard.kill()

    def _tidy(self) -> None:
        if self._guard:
            # Its stdout has ended, so it is past its last line.
            self._guard.wait()
        if self._transport:
            self._transport.close()


def _start_guard() -> subprocess.Popen[bytes]:
    # Not by asyncio: a plain call cannot be cancelled half-way, so no guard is ever out of sight.
    # -I -S: the guard takes nothing from the user's Python settings, and starts in a few hundredths of a second.
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(_GUARD)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={key: value for key, value in os.environ.items() if key in ("PATH", "LANG", "LC_ALL", "HOME")},
    )


class _Reports(asyncio.Protocol):
    """The guard's lines, as futures."""

    def __init__(self, child: ChildProcess) -> None:
        loop = asyncio.get_running_loop()
        self.started: asyncio.Future[int] = loop.create_future()
        self.ended: asyncio.Future[int] = loop.create_future()
        self.gone: asyncio.Future[None] = loop.create_future()
        self.on_signal: Callable[[str], None] | None = None
        self._child = child
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        """Takes whole lines; keeps the rest."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            word, _, value = line.decode().partition(" ")
            self._take(word, value)

    def connection_lost(self, exc: Exception | None) -> None:
        """The guard is gone. If the server did not end by its doing, it is ended here."""
        del exc
        if self._child.returncode is None:
            if self._child.pid is not None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._child.pid, signal.SIGKILL)
            self._child.returncode = -signal.SIGKILL
        if not self.started.done():
            self.started.set_exception(ServerError("The server's guard process ended before the server started."))
            self.started.exception()  # retrieved here too: nobody may be waiting any more
        if not self.ended.done():
            self.ended.set_result(self._child.returncode)
        self.gone.set_result(None)

    def _take(self, word: str, value: str) -> None:
        if word == "pid":
            self._child.pid = int(value)
            self.started.set_result(int(value))
        elif word == "failed":
            self._child.returncode = 127
            self.started.set_exception(
                ServerError(f"{self._child.command[0]} cannot be run ({value}); check the server's command.")
            )
            self.started.exception()
        elif word == "exit":
            self._child.returncode = int(value)
            if not self.ended.done():
                self.ended.set_result(int(value))
        elif word == "signal" and self.on_signal:
            self.on_signal(value)
