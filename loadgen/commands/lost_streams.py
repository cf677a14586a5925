"""What to do once nobody reads standard error any more."""

import contextlib
import os
import sys

from rich.console import Console


class PlainConsole(Console):
    """Standard error as a console that raises BrokenPipeError as it is: rich's own points standard output, where the
    answer goes, at nothing, and ends the process.
    """

    def __init__(self) -> None:
        super().__init__(stderr=True)

    def on_broken_pipe(self) -> None:
        """Raises it again, for whoever called print."""
        raise BrokenPipeError


def silence() -> None:
    """Standard error leads nowhere from now on, and standard output too if it was the same pipe (`2>&1 | head`), so
    that what follows is no second error.
    """
    with contextlib.suppress(OSError, ValueError, AttributeError):
        lost = os.fstat(sys.stderr.fileno())
        for stream in (sys.stdout, sys.stderr):
            own = os.fstat(stream.fileno())
            if (own.st_dev, own.st_ino) == (lost.st_dev, lost.st_ino):
                _lead_nowhere(stream.fileno())


def _lead_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)
