"""Append-only files of JSON lines that survive a kill in the middle of a write."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

from loadgen.errors import UsageError
from loadgen.store.codec import decode, encode

T = TypeVar("T")


class DamagedLineError(UsageError, ValueError):
    """A line that is neither the last one, torn, nor a fact: something else than loadgen wrote into the file."""


class Appender:
    """Appends facts to one file, a line each, in a single write per fact.

    A torn last line (the writer was killed in the middle of it) is cut off on opening: it is no record, and glued to
    the next line it would spoil that one too.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            _cut_torn_tail(path)
            self._file: BinaryIO = path.open("ab", buffering=0)
        except OSError as error:
            raise unwritable(path, error) from error

    def append(self, *facts: object) -> None:
        """Writes the facts, each on its own line; they are the kernel's when this returns.

        UsageError if they do not fit on the disk; then none of them stands in the file, and a resume finds it whole.
        """
        if not facts:
            return
        data = memoryview(b"".join(encode(fact) + b"\n" for fact in facts))
        before = self._file.seek(0, os.SEEK_END)
        try:
            # A raw file may take less than it was given: the end of a full disk is a short write, no error.
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            self._file.truncate(before)
            raise unwritable(self._path, error) from error

    def sync(self) -> None:
        """The file's lines are on the disk when this returns."""
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise unwritable(self._path, error) from error

    def close(self) -> None:
        """Closes the file; further appends fail."""
        self._file.close()


def read(path: Path, kind: type[T]) -> Iterator[T]:
    """The facts of a file, in their order; a missing file gives none, a torn last line is passed over.

    DamagedLineError names file and line of any other line that does not fit.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            try:
                yield decode(line, kind)
            except ValueError as error:
                raise DamagedLineError(f"{path}:{number} cannot be read ({error}); remove that line.") from error


def unwritable(path: Path, error: OSError) -> UsageError:
    """The sentence for a measurement that cannot be kept."""
    return UsageError(
        f"{path} cannot be written ({error.strerror or error}); free space or allow writing, then resume the run."
    )


def _cut_torn_tail(path: Path) -> None:
    if not path.exists():
        return
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        position = size
        while position > 0:
            start = max(0, position - 65536)
            file.seek(start)
            block = file.read(position - start)
            newline = block.rfind(b"\n")
            if newline >= 0:
                position = start + newline + 1
                break
            position = start
        if position != size:
            file.truncate(position)
