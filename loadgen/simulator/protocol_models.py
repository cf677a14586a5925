"""Request bodies of the OpenAI-compatible API, and the checks that vLLM 0.32 makes on them.

Unknown keys are ignored, as vLLM does; known keys that the simulator cannot honour are refused by name.
"""

import math
from typing import Any, TypeVar

import msgspec

from loadgen.simulator.errors import ApiError, invalid, malformed, unsupported

MAX_LOGPROBS = 20

T = TypeVar("T")


class StreamOptions(msgspec.Struct):
    """What a stream should report beside its text."""

    include_usage: bool | None = False
    continuous_usage_stats: bool | None = False


class SamplingBody(msgspec.Struct):
    """What completions and chat completions have in common."""

    model: str | None = None
    max_tokens: int | None = None
    n: int | None = 1
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    ignore_eos: bool = False
    min_tokens: int = 0
    min_p: float | None = None
    logit_bias: dict[str, float] | None = None
    return_token_ids: bool | None = None
    return_tokens_as_token_ids: bool | None = None
    echo: bool | None = False
    use_beam_search: bool = False
    prompt_logprobs: int | None = None
    truncate_prompt_tokens: int | None = None
    structured_outputs: Any = None
    response_format: Any = None
    request_id: str | None = None

    @property
    def wants_usage(self) -> bool:
        """True if a last event with the usage is asked for."""
        return bool(self.stream_options and self.stream_options.include_usage)

    @property
    def wants_continuous_usage(self) -> bool:
        """True if every event should carry the usage so far (vLLM: only together with `include_usage`)."""
        return self.wants_usage and bool(self.stream_options and self.stream_options.continuous_usage_stats)


class CompletionBody(SamplingBody):
    """The body of POST /v1/completions."""

    prompt: str | list[int | str | list[int]] | None = None
    max_tokens: int | None = 16
    logprobs: int | None = None
    suffix: str | None = None


class ChatMessage(msgspec.Struct):
    """One message; content is text or a list of text parts."""

    role: str
    content: str | list[dict[str, Any]] | None = None

    @property
    def text(self) -> str:
        """The content as one string; ApiError for parts that are not text."""
        if isinstance(self.content, list):
            parts: list[str] = []
            for part in self.content:
                if part.get("type") != "text":
                    raise unsupported("messages", "send text parts only")
                parts.append(str(part.get("text", "")))
            return "\n".join(parts)
        return self.content or ""


class ChatBody(SamplingBody, kw_only=True):
    """The body of POST /v1/chat/completions."""

    messages: list[ChatMessage]
    max_completion_tokens: int | None = None
    logprobs: bool | None = False
    top_logprobs: int | None = 0
    tools: Any = None


class TokenizeBody(msgspec.Struct):
    """The body of POST /tokenize: a prompt or messages."""

    model: str | None = None
    prompt: str | None = None
    messages: list[ChatMessage] | None = None
    return_token_strs: bool | None = False


class DetokenizeBody(msgspec.Struct):
    """The body of POST /detokenize."""

    tokens: list[int]
    model: str | None = None


def decode(body: bytes, kind: type[T]) -> T:
    """The body as `kind`; ApiError 400 if it is no JSON or has a wrong type somewhere."""
    try:
        return msgspec.json.decode(body, type=kind, strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise malformed(str(error)) from error


def check_sampling(body: SamplingBody, speculative: bool, logprobs: int | None) -> None:
    """Raises the ApiError that vLLM raises for the first wrong value, or one that says what the simulator lacks."""
    if body.stream_options is not None and not body.stream:
        raise invalid("Stream options can only be defined when `stream=True`.", "stream_options")
    if body.n not in (None, 1):
        raise unsupported("n", f"send n requests with n=1 instead of n={body.n}")
    _check_ranges(body)
    if logprobs is not None and logprobs > MAX_LOGPROBS:
        raise invalid(
            f"Requested sample logprobs of {logprobs}, which is greater than max allowed: {MAX_LOGPROBS}",
            "logprobs",
            logprobs,
        )
    if logprobs is not None and logprobs < 0:
        raise unsupported("logprobs", "ask for 0 to 20 of them")
    if speculative and ((body.min_p or 0.0) > 0.0 or body.logit_bias):
        raise ApiError("The min_p and logit_bias sampling parameters are not yet supported with speculative decoding.")
    _check_supported(body)


def _check_ranges(body: SamplingBody) -> None:
    temperature, top_p, min_p = body.temperature, body.top_p, body.min_p
    if temperature is not None and not math.isfinite(temperature):
        raise invalid(f"temperature must be a finite number, got {temperature}.", "temperature", temperature)
    if temperature is not None and temperature < 0:
        raise invalid(f"temperature must be non-negative, got {temperature}.", "temperature", temperature)
    if temperature is not None and temperature > 2:
        raise invalid(f"temperature must be in [0, 2], got {temperature}.", "temperature", temperature)
    if top_p is not None and not 0 < top_p <= 1:
        raise invalid(f"top_p must be in (0, 1], got {top_p}.", "top_p", top_p)
    if min_p is not None and not 0 <= min_p <= 1:
        raise ApiError(f"min_p must be in [0, 1], got {min_p}.")
    if body.min_tokens < 0:
        raise ApiError(f"min_tokens must be greater than or equal to 0, got {body.min_tokens}.")


def _check_supported(body: SamplingBody) -> None:
    if body.stop:
        raise unsupported("stop", "leave it empty")
    if body.stop_token_ids:
        raise unsupported("stop_token_ids", "leave it empty")
    if body.min_tokens and not body.ignore_eos:
        raise unsupported("min_tokens", "set ignore_eos as well")
    text_only = body.response_format is None or (
        isinstance(body.response_format, dict) and body.response_format.get("type") == "text"
    )
    lacking = {
        "echo": body.echo,
        "use_beam_search": body.use_beam_search,
        "prompt_logprobs": body.prompt_logprobs is not None,
        "truncate_prompt_tokens": body.truncate_prompt_tokens is not None,
        "structured_outputs": body.structured_outputs is not None,
        "response_format": not text_only,
        "tools": bool(getattr(body, "tools", None)),
        "suffix": bool(getattr(body, "suffix", None)),
    }
    for name, asked in lacking.items():
        if asked:
            raise unsupported(name, "leave it out")


def check_length(prompt_tokens: int, max_tokens: int | None, max_model_len: int, param: str = "max_tokens") -> int:
    """The tokens that may be generated; ApiError if the request or its prompt exceeds the context."""
    if max_tokens is not None and max_tokens > max_model_len:
        raise invalid(
            f"{param}={max_tokens} cannot be greater than max_model_len={max_model_len}. "
            "Please request fewer output tokens.",
            param,
            max_tokens,
        )
    if prompt_tokens > max_model_len:
        # vLLM tokenizes at most one token past the limit, so it does not know by how much the prompt exceeds it.
        raise invalid(
            f"This model's maximum context length is {max_model_len} tokens. However, your prompt contains at least "
            f"{max_model_len + 1} input tokens, which exceeds this limit even without any output tokens. "
            "Please reduce the length of the input prompt.",
            "input_tokens",
            max_model_len + 1,
        )
    room = max_model_len - prompt_tokens
    allowed = room if max_tokens is None else min(room, max_tokens)
    if allowed < 1:
        raise invalid(f"max_tokens must be at least 1, got {allowed}.", "max_tokens", allowed)
    return allowed


def single_prompt(prompt: str | list[int | str | list[int]] | None) -> str | tuple[int, ...]:
    """The one prompt of a completions body, as text or token ids; ApiError for none or several."""
    if prompt is None or prompt == []:
        raise invalid("Either prompt or prompt_embeds must be provided and non-empty.", "prompt")
    if isinstance(prompt, str):
        return prompt
    if all(isinstance(item, int) for item in prompt):
        return _token_ids(prompt)
    if len(prompt) > 1:
        raise unsupported("prompt", f"send {len(prompt)} requests with one prompt each")
    only = prompt[0]
    return only if isinstance(only, str) else _token_ids(only)


def _token_ids(items: object) -> tuple[int, ...]:
    assert isinstance(items, list)
    if not items or min(items) < 0:
        raise invalid("Token ids must be a non-empty list of integers of at least 0.", "prompt")
    return tuple(items)
