"""Errors for a user: one sentence with the cure, and the exit code that goes with it."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command's exit status means."""

    ANSWER = 0
    FINDINGS = 1
    USAGE = 2
    NO_VERDICT = 3
    INTERRUPTED = 130


class LoadgenError(Exception):
    """A fault that ends a command; its text is one sentence that names the cause and the cure."""

    exit_code: ExitCode = ExitCode.USAGE


class UsageError(LoadgenError):
    """A wrong argument or input file; raised before any work starts."""


class ServerError(LoadgenError):
    """A server did not come up, died, or answers what it should not."""

    exit_code = ExitCode.NO_VERDICT


class NoVerdictError(LoadgenError):
    """The measured cells do not carry a verdict."""

    exit_code = ExitCode.NO_VERDICT
