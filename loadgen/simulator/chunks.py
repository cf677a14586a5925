"""Bytes of vLLM 0.32's answers: everything that is constant in a stream is serialised once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

DONE = b"data: [DONE]\n\n"
_json = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class AnswerHead:
    """What every piece of one answer repeats, and what was asked to be in it."""

    request_id: str
    created: int
    model: str
    fingerprint: str
    prompt_token_ids: Sequence[int]
    return_token_ids: bool = False
    include_usage: bool = False
    continuous_usage: bool = False


@dataclass(frozen=True)
class Delta:
    """One piece of generated text; `completion_tokens` counts up to and including it."""

    text: str
    token_ids: Sequence[int]
    completion_tokens: int
    finish_reason: str | None = None
    logprobs: bytes = b"null"


class _Chunks:
    """What both APIs share."""

    def __init__(self, head: AnswerHead, kind: str) -> None:
        self.head = head
        self._start = b'data: {"id":%b,"object":"%b","created":%d,"model":%b,"choices":[' % (
            _json(head.request_id),
            kind.encode(),
            head.created,
            _json(head.model),
        )
        self._prompt = len(head.prompt_token_ids)

    def _usage(self, completion_tokens: int, more: bytes = b"") -> bytes:
        return b'"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d%b}' % (
            self._prompt,
            self._prompt + completion_tokens,
            completion_tokens,
            more,
        )

    def _tail(self, delta: Delta, more: bytes = b"") -> bytes:
        tail = b"}]"
        if self.head.continuous_usage:
            tail += b"," + self._usage(delta.completion_tokens, more)
        if delta.finish_reason is not None and not self.head.include_usage:
            tail += b',"system_fingerprint":' + _json(self.head.fingerprint)
        return tail + b"}\n\n"

    def usage(self, completion_tokens: int, metrics: Mapping[str, Any] | None) -> bytes:
        """The last event before `[DONE]` if usage was asked for."""
        end = b"" if metrics is None else b',"metrics":{"speculative_decoding":' + _json(metrics) + b"}"
        return b'%b],%b,"system_fingerprint":%b%b}\n\n' % (
            self._start,
            self._usage(completion_tokens),
            _json(self.head.fingerprint),
            end,
        )

    def _usage_content(self, completion_tokens: int) -> dict[str, Any]:
        return {
            "prompt_tokens": self._prompt,
            "total_tokens": self._prompt + completion_tokens,
            "completion_tokens": completion_tokens,
            "prompt_tokens_details": None,
            "completion_tokens_details": None,
        }


class CompletionChunks(_Chunks):
    """Answers of /v1/completions."""

    def __init__(self, head: AnswerHead) -> None:
        super().__init__(head, "text_completion")
        self._start_choice = self._start + b'{"index":0,"text":'

    def first(self) -> bytes:
        """Nothing: completions start with their first text."""
        return b""

    def delta(self, delta: Delta, *, first: bool) -> bytes:
        """One event; `first` puts the prompt's token ids into it if they were asked for."""
        asked = self.head.return_token_ids
        prompt = _json(self.head.prompt_token_ids) if asked and first else b"null"
        return b'%b%b,"logprobs":%b,"finish_reason":%b,"stop_reason":null,"prompt_token_ids":%b,"token_ids":%b%b' % (
            self._start_choice,
            _json(delta.text),
            delta.logprobs,
            _json(delta.finish_reason),
            prompt,
            _json(delta.token_ids) if asked else b"null",
            self._tail(delta),
        )

    def whole(self, delta: Delta, metrics: Mapping[str, Any] | None) -> bytes:
        """The body of an answer that was not streamed."""
        asked = self.head.return_token_ids
        choice = {
            "index": 0,
            "text": delta.text,
            "logprobs": msgspec.Raw(delta.logprobs),
            "finish_reason": delta.finish_reason,
            "stop_reason": None,
            "token_ids": delta.token_ids if asked else None,
            "prompt_logprobs": None,
            "prompt_token_ids": self.head.prompt_token_ids if asked else None,
            "routed_experts": None,
        }
        return _json(
            {
                "id": self.head.request_id,
                "object": "text_completion",
                "created": self.head.created,
                "model": self.head.model,
                "choices": [choice],
                "service_tier": None,
                "system_fingerprint": self.head.fingerprint,
                "usage": self._usage_content(delta.completion_tokens),
                "kv_transfer_params": None,
                "ec_transfer_params": None,
                "metrics": _whole_metrics(metrics),
            }
        )


class ChatChunks(_Chunks):
    """Answers of /v1/chat/completions."""

    _NO_DETAILS = b',"completion_tokens_details":null'

    def __init__(self, head: AnswerHead) -> None:
        super().__init__(head, "chat.completion.chunk")
        self._start_choice = self._start + b'{"index":0,"delta":{"content":'

    def first(self) -> bytes:
        """The event with the role, sent with the first output."""
        role = b'{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]'
        usage = b"," + self._usage(0, self._NO_DETAILS) if self.head.continuous_usage else b""
        prompt = _json(self.head.prompt_token_ids) if self.head.return_token_ids else b"null"
        return b'%b%b%b,"prompt_token_ids":%b,"prompt_text":null}\n\n' % (self._start, role, usage, prompt)

    def delta(self, delta: Delta, *, first: bool) -> bytes:
        """One event; the prompt's token ids went with the role, whichever event this is."""
        stop_reason = b"" if delta.finish_reason is None else b',"stop_reason":null'
        return b'%b%b},"logprobs":%b,"finish_reason":%b%b,"token_ids":%b%b' % (
            self._start_choice,
            _json(delta.text),
            delta.logprobs,
            _json(delta.finish_reason),
            stop_reason,
            _json(delta.token_ids) if self.head.return_token_ids else b"null",
            self._tail(delta, self._NO_DETAILS),
        )

    def whole(self, delta: Delta, metrics: Mapping[str, Any] | None) -> bytes:
        """The body of an answer that was not streamed."""
        asked = self.head.return_token_ids
        empty = dict.fromkeys(("refusal", "annotations", "audio", "function_call", "reasoning"))
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": delta.text, **empty},
            "logprobs": msgspec.Raw(delta.logprobs),
            "finish_reason": delta.finish_reason,
            "stop_reason": None,
            "token_ids": delta.token_ids if asked else None,
            "routed_experts": None,
        }
        return _json(
            {
                "id": self.head.request_id,
                "object": "chat.completion",
                "created": self.head.created,
                "model": self.head.model,
                "choices": [choice],
                "service_tier": None,
                "system_fingerprint": self.head.fingerprint,
                "usage": self._usage_content(delta.completion_tokens),
                "prompt_logprobs": None,
                "prompt_token_ids": self.head.prompt_token_ids if asked else None,
                "prompt_text": None,
                "kv_transfer_params": None,
                "ec_transfer_params": None,
                "metrics": _whole_metrics(metrics),
            }
        )


def _whole_metrics(metrics: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """`metrics` of an answer that was not streamed: vLLM leaves every empty field in there."""
    if metrics is None:
        return None
    timing = ("time_to_first_token_ms", "generation_time_ms", "queue_time_ms", "mean_itl_ms", "tokens_per_second")
    steps = {name: metrics.get(name) for name in ("per_step_accepted", "per_step_drafted")}
    return {**dict.fromkeys(timing), "speculative_decoding": {**metrics, **steps}}
