"""The parts of an OpenAI response that a load tester reads; everything else is skipped unread.

JSON holds no cycles, so the structs stay out of the garbage collector's sight (gc=False).
"""

from typing import Any

import msgspec


class Function(msgspec.Struct, gc=False):
    """A tool call's function, perhaps a piece of it."""

    name: str | None = None
    arguments: str | None = None


class ToolCall(msgspec.Struct, gc=False):
    """A tool call, perhaps a piece of it."""

    function: Function | None = None


class Delta(msgspec.Struct, gc=False):
    """A message or a piece of one. Older servers name reasoning `reasoning_content`."""

    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None


class Choice(msgspec.Struct, gc=False):
    """One choice of a chunk or of a whole reply."""

    text: str | None = None
    delta: Delta | None = None
    message: Delta | None = None
    finish_reason: str | None = None
    token_ids: list[int] | None = None


class Usage(msgspec.Struct, gc=False):
    """The server's own token counts."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Reply(msgspec.Struct, gc=False):
    """A chunk, a whole reply, or an error body."""

    choices: list[Choice] | None = None
    usage: Usage | None = None
    error: Any = None
    message: Any = None
    """Where an error body has no `error` object."""
    detail: Any = None
    """FastAPI's own errors."""
    code: Any = None
    metrics: dict[str, Any] | None = None


_DECODER = msgspec.json.Decoder(Reply)


def parse_reply(data: bytes) -> Reply | None:
    """The reply; None if the bytes are not JSON or not of this form."""
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def parse_lines(data: bytes) -> list[Reply] | None:
    """The replies of bytes that hold one a line; None if one of them is not JSON or not of this form."""
    try:
        return _DECODER.decode_lines(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def error_text(reply: Reply | None, fallback: str) -> str:
    """What an error body says, with its code: from `error` as object or string, `message`, or `detail`."""
    if reply is None:
        return fallback
    said = next((value for value in (reply.error, reply.message, reply.detail) if value), None)
    if said is None:
        return fallback
    if isinstance(said, dict):
        message, code = said.get("message"), said.get("code")
        text = str(message) if message else msgspec.json.encode(said).decode()
        return text if code is None else f"{text} (code {code})"
    text = said if isinstance(said, str) else msgspec.json.encode(said).decode()
    return text if reply.code is None else f"{text} (code {reply.code})"
