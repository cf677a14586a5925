"""What every reader gives, and how faults in a file are told."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from loadgen.errors import UsageError
from loadgen.workloads.base import Message

_SHOWN_FAULTS = 5


@dataclass(frozen=True)
class FilePrompt:
    """One prompt as it stands in a file. Exactly one of `messages`, `text` and `token_ids` is set."""

    messages: tuple[Message, ...] | None = None
    text: str | None = None
    token_ids: tuple[int, ...] | None = None
    max_tokens: int | None = None


@dataclass(frozen=True)
class FilePrompts:
    """What a file holds, and what had to be left out of it."""

    prompts: tuple[FilePrompt, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fault:
    """One line or entry that cannot be used."""

    place: str
    """`line 4`, `entry 17`."""
    reason: str


def user(content: str, max_tokens: int | None = None) -> FilePrompt:
    """A prompt of one user message."""
    return FilePrompt(messages=(Message("user", content),), max_tokens=max_tokens)


def read_bytes(path: Path) -> bytes:
    """The file's bytes without a byte-order mark; UsageError if it cannot be read."""
    try:
        return path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise UsageError(f"workload file {path} cannot be read ({error.strerror}); give the path of a file") from error


def json_lines(raw: bytes, faults: list[Fault]) -> Iterator[tuple[int, Any]]:
    """(line number, value) of every line that is JSON; the others go into `faults`, blank ones are skipped.

    Lines end at LF alone: JSON strings may hold U+2028 and other signs at which `str.splitlines` would cut.
    """
    for number, line in enumerate(raw.split(b"\n"), start=1):
        try:
            text = line.decode("utf-8")
            if text.strip():
                value = json.loads(text)
                # JSON may spell half a character (\\ud800), which no request can carry.
                if "\\ud" in text.lower():
                    json.dumps(value, ensure_ascii=False).encode("utf-8")
                yield number, value
        except UnicodeDecodeError:
            faults.append(Fault(f"line {number}", "is not UTF-8"))
        except UnicodeEncodeError:
            faults.append(Fault(f"line {number}", "has half a character (a lone surrogate)"))
        except ValueError as error:
            faults.append(Fault(f"line {number}", f"is not JSON ({error})"))
        except RecursionError:
            faults.append(Fault(f"line {number}", "is nested too deeply"))


def reason_of(error: ValidationError) -> str:
    """The first fault of a record in a few words."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    text = first["msg"].removeprefix("Value error, ")
    return f"{where}: {text}" if where else text


def refuse(path: Path, faults: list[Fault]) -> None:
    """UsageError with the first places and reasons if there are faults: a run on half a file would mislead."""
    if not faults:
        return
    shown = "; ".join(f"{fault.place}: {fault.reason}" for fault in faults[:_SHOWN_FAULTS])
    more = f"; and {len(faults) - _SHOWN_FAULTS} more" if len(faults) > _SHOWN_FAULTS else ""
    raise UsageError(f"workload file {path} has {len(faults)} fault(s), nothing was run: {shown}{more}")
