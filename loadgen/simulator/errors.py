"""Errors as vLLM 0.32 answers them: status, type, param and wording."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

ENGINE_DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."


class ApiError(Exception):
    """One error body: `{"error": {message, type, param, code}}`."""

    def __init__(
        self, message: str, *, kind: str = "BadRequestError", param: str | None = None, code: int = 400
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.param = param
        self.code = code

    @property
    def content(self) -> Mapping[str, Any]:
        """The body as plain data, keys in vLLM's order."""
        return {"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}}

    @property
    def body(self) -> bytes:
        """The body as compact JSON, for an answer with its own status."""
        return msgspec.json.encode(self.content)

    @property
    def event(self) -> bytes:
        """The body as an event inside a stream whose 200 is out; vLLM writes spaces after `:` and `,` there."""
        return b"data: " + json.dumps(self.content).encode() + b"\n\n"


def invalid(message: str, param: str, value: object = None) -> ApiError:
    """A 400 about one parameter, worded as vLLM's validation errors are: `… (parameter=max_tokens, value=0)`."""
    extras = f"parameter={param}" if value is None else f"parameter={param}, value={value}"
    return ApiError(f"{message} ({extras})", param=param)


def malformed(message: str) -> ApiError:
    """A 400 about a body that does not parse or has a wrong type somewhere."""
    return ApiError(message, kind="Bad Request")


def unsupported(param: str, cure: str) -> ApiError:
    """A 400 for what vLLM can do and this simulator cannot: never silently ignored."""
    return invalid(f"The simulator does not support {param}; {cure}.", param)


def unknown_model(model: str, served: str) -> ApiError:
    """The 404 for a model that is not served."""
    return ApiError(
        f"The model `{model}` does not exist. Valid aliases: {served}.", kind="NotFoundError", param="model", code=404
    )


def status_error(code: int, phrase: str, detail: str | None = None) -> ApiError:
    """An error of the HTTP layer, such as 404 Not Found or 405 Method Not Allowed."""
    return ApiError(detail or phrase, kind=phrase, code=code)


def engine_dead() -> ApiError:
    """What every request gets once the engine core has died."""
    return ApiError(ENGINE_DEAD, kind="InternalServerError", code=500)
