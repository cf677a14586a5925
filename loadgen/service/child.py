"""One sweep as a child process in a session of its own: it outlives a killed service, which finds it again."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

from loadgen.service.runsfolder import PROGRESS
from loadgen.service.state import sweep_pid

FINISH_S = 20.0
_LOOK_S = 0.5


class Child:
    """A running sweep: our own child, or one that an earlier service or a terminal started."""

    def __init__(self, folder: Path, pid: int, process: asyncio.subprocess.Process | None) -> None:
        self.folder = folder
        self.pid = pid
        self._process = process

    async def ended(self) -> int | None:
        """The exit code once it has ended; None for a process that was not started here."""
        if self._process is not None:
            return await self._process.wait()
        while self._runs():  # noqa: ASYNC110  # the end of a process that is no child of ours cannot be awaited
            await asyncio.sleep(_LOOK_S)
        return None

    async def stop(self, grace_s: float) -> None:
        """Returns when it has ended: SIGINT (as Ctrl-C), after `grace_s` once more, then SIGKILL to its group.

        Its servers have guards of their own, which stop them even then.
        """
        for number, wait_s in ((signal.SIGINT, grace_s), (signal.SIGINT, FINISH_S), (signal.SIGKILL, FINISH_S)):
            if not self._runs():
                return
            self._send(number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self.ended()
                    return

    def _send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            # Only a group that it leads: one that a terminal started may share its group with others.
            if number == signal.SIGKILL and os.getpgid(self.pid) == self.pid:
                os.killpg(self.pid, number)
            else:
                os.kill(self.pid, number)

    def _runs(self) -> bool:
        if self._process is not None:
            return self._process.returncode is None
        return sweep_pid(self.folder) == self.pid


async def start(command: tuple[str, ...], folder: Path, runs: Path) -> Child:
    """The started sweep that goes on with the run; its stderr is appended to the run's `progress.jsonl`."""
    arguments = (*command, "--resume", str(folder), "--runs", str(runs), "--json")
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    progress = os.open(folder / PROGRESS, flags, 0o644)
    try:
        process = await asyncio.create_subprocess_exec(
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=progress,
            start_new_session=True,
            # The service's secret is none of the sweep's business, nor of the servers that it starts.
            env={name: value for name, value in os.environ.items() if name != "LOADGEN_TOKEN"},
        )
    finally:
        os.close(progress)
    return Child(folder, process.pid, process)


def adopt(folder: Path) -> Child | None:
    """The sweep that is at work on the run, whoever started it; None if there is none."""
    pid = sweep_pid(folder)
    return Child(folder, pid, None) if pid is not None else None
