"""One fault that a check found, in a form for people and for scripts."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """What is wrong, where, and what to do about it."""

    code: str
    """Short and stable: `unpinned-image`, `port-taken`, …"""
    where: str
    what: str
    cure: str
    is_error: bool = True
    """False: it works, and will bite later."""

    @property
    def line(self) -> str:
        """The finding as one line."""
        kind = "error  " if self.is_error else "warning"
        return f"{kind} {self.where}: {self.what}; {self.cure}. [{self.code}]"


@dataclass(frozen=True)
class Note:
    """Something that was looked at and is well, or that could not be looked at."""

    where: str
    text: str


def errors(findings: Iterable[Finding]) -> list[Finding]:
    """Those that are errors."""
    return [finding for finding in findings if finding.is_error]
