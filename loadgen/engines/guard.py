"""A small parent for one server: whatever happens to loadgen, even SIGKILL, it ends the server and all its children.

Started as a file of its own (`python -I -S guard.py`), so it imports nothing of loadgen. It reads one JSON line
`{"command": [...], "environment": {...}, "log": PATH, "cwd": PATH, "graces": {"SIGINT": s, "SIGTERM": s, …}}` from
stdin; the environment travels here and not on the command line, where `ps` would show its tokens. When stdin ends
(loadgen closed it, or died), the server is stopped; on SIGUSR1 by SIGKILL at once. It tells on stdout: `pid N`,
`failed REASON`, `exit CODE`, `signal NAME`, and `left PID…` for what even SIGKILL did not end.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

# prctl(2): orphans of the server become children of this process and not of init, so that none is lost from sight.
PR_SET_CHILD_SUBREAPER = 36
STOP_SIGNALS = ("SIGINT", "SIGTERM", "SIGKILL")


def tell(text: str) -> None:
    """Writes one line to loadgen; it may be gone, and the work goes on without it."""
    with contextlib.suppress(OSError):
        os.write(1, f"{text}\n".encode())


def spawn(order: dict[str, Any]) -> int:
    """The server's pid; it leads a session and a group of its own, and writes to the log."""
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    null = os.open(os.devnull, os.O_RDONLY)
    if order.get("cwd"):
        os.chdir(order["cwd"])
    default = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD]
    return os.posix_spawnp(
        order["command"][0],
        order["command"],
        order["environment"],
        file_actions=[(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)],
        setsid=True,
        setsigdef=default,
        setsigmask=[],
    )


def descendants() -> set[int]:
    """Pids of all processes below this one, zombies left out; empty where there is no /proc."""
    parents: dict[int, int] = {}
    with contextlib.suppress(OSError):
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, IndexError):
                text = (process / "stat").read_text(encoding="utf-8", errors="replace")
                # The command in brackets may hold spaces and brackets itself.
                state, parent = text.rsplit(")", 1)[1].split()[:2]
                if state != "Z":
                    parents[int(process.name)] = int(parent)
    found: set[int] = set()
    frontier = {os.getpid()}
    while frontier:
        frontier = {pid for pid, parent in parents.items() if parent in frontier} - found
        found |= frontier
    return found


class Guard:
    """Watches one server from its start until nothing of it is left."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.graces: dict[str, float] = order["graces"]
        self.wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.wanted_down = False
        signal.signal(signal.SIGTERM, self.want_down)
        signal.signal(signal.SIGHUP, self.want_down)
        self.hurried = False
        signal.signal(signal.SIGUSR1, self.hurry)
        self.server = spawn(order)
        self.running = True

    def want_down(self, *_: object) -> None:
        """Someone wants this process gone: then the server must go first."""
        self.wanted_down = True

    def hurry(self, *_: object) -> None:
        """Loadgen was asked twice to end: no grace is left."""
        self.wanted_down = self.hurried = True

    def reap(self) -> bool:
        """Takes in every child that ended and tells of the server's end; True if no child is left at all."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == self.server:
                self.running = False
                tell(f"exit {os.waitstatus_to_exitcode(status)}")

    def sleep(self, inputs: list[int], limit_s: float | None) -> bool:
        """Until a child ended, one of `inputs` can be read, or the time is over; says if an input can be read."""
        ready, _, _ = select.select([self.wake_read, *inputs], [], [], limit_s)
        if self.wake_read in ready:
            os.read(self.wake_read, 4096)
        return any(item in ready for item in inputs)

    def watch(self) -> None:
        """Returns when the server has ended or is to end."""
        while self.running and not self.wanted_down:
            if self.sleep([0], None) and not os.read(0, 4096):
                return
            self.reap()

    def send(self, name: str) -> None:
        """The signal to the server's group and to what left that group."""
        number = getattr(signal, name)
        tell(f"signal {name}")
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.server, number)
        if name == "SIGINT":
            return
        for pid in descendants():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.getpgid(pid) != self.server:
                    os.kill(pid, number)

    def finish(self) -> None:
        """Ends the server and everything it started: politely, firmly, at last by force."""
        # A server that ended by itself was not interrupted: what it left behind gets no second polite request.
        names = STOP_SIGNALS if self.running else STOP_SIGNALS[1:]
        for name in names:
            last = name == STOP_SIGNALS[-1]
            if self.reap():
                return
            if self.hurried and not last:
                continue
            self.send(name)
            until = time.monotonic() + self.graces[name]
            while not self.reap() and (left := until - time.monotonic()) > 0 and (last or not self.hurried):
                self.sleep([], left)
        if not self.reap():
            tell("left " + " ".join(str(pid) for pid in sorted(descendants())))


def main() -> None:
    """Runs one order."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        return  # loadgen ended before it had said what to start
    try:
        guard = Guard(json.loads(line))
    except OSError as error:
        tell(f"failed {error.strerror}")
        return
    tell(f"pid {guard.server}")
    guard.watch()
    guard.finish()


if __name__ == "__main__":
    main()
