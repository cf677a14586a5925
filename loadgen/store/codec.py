"""Facts to JSON lines and back."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def encode(fact: object) -> bytes:
    """One JSON value without a line end; non-finite numbers become null, so that every reader can parse it."""
    return msgspec.json.encode(fact)


def decode(line: bytes, kind: type[T]) -> T:
    """The fact of that kind; raises ValueError if the line is torn or of another kind."""
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ValueError(f"not a {kind.__name__}: {error}") from error


def builtins(fact: object) -> Any:
    """The fact as dicts, lists, strings and numbers."""
    return msgspec.to_builtins(fact)


def convert(values: Mapping[str, Any], kind: type[T]) -> T:
    """The fact of that kind from plain values; raises ValueError if they do not fit."""
    try:
        return msgspec.convert(values, type=kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"not a {kind.__name__}: {error}") from error
