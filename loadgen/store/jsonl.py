"""Append-only files of JSON lines that survive a kill in the middle of a write."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

from loadgen.store.codec import decode, encode

T = TypeVar("T")


class Appender:
    """Appends facts to one file, a line each, in a single write per fact.

    A torn last line (the writer was killed in the middle of it) is cut off on opening: it is no record, and glued to
    the next line it would spoil that one too.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        _cut_torn_tail(path)
        self._file: BinaryIO = path.open("ab", buffering=0)

    def append(self, *facts: object) -> None:
        """Writes the facts, each on its own line; they are the kernel's when this returns."""
        if facts:
            self._file.write(b"".join(encode(fact) + b"\n" for fact in facts))

    def sync(self) -> None:
        """The file's lines are on the disk when this returns."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Closes the file; further appends fail."""
        self._file.close()


def read(path: Path, kind: type[T]) -> Iterator[T]:
    """The facts of a file, in their order; a missing file gives none, a torn last line is passed over.

    Raises ValueError with file and line for any other line that does not fit.
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
                raise ValueError(f"{path}:{number}: {error}") from error


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
