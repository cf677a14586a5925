"""One writer per run folder."""

import fcntl
import os
from pathlib import Path
from types import TracebackType

from loadgen.errors import UsageError


class FolderLock:
    """Held while a process writes into a run folder; the kernel drops it with the process, however that ends."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "lock"
        self._descriptor: int | None = None

    def __enter__(self) -> "FolderLock":
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UsageError(
                f"{self._path.parent} cannot be written ({error.strerror or error}); copy the run to a folder that can."
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 64).decode(errors="replace").strip() or "another process"
            os.close(descriptor)
            raise UsageError(
                f"{self._path.parent} is being written by {holder}; wait for it, or stop it before you resume the run."
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()}\n".encode())
        self._descriptor = descriptor
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None
