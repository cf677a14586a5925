"""One completion or chat completion: from the request body to the engine, and from the engine's outputs to events."""

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from loadgen.simulator.chunks import DONE, AnswerHead, ChatChunks, CompletionChunks, Delta
from loadgen.simulator.errors import ApiError, unknown_model
from loadgen.simulator.http import HttpRequest
from loadgen.simulator.logprobs import LogprobSource, chat_logprobs, completion_logprobs
from loadgen.simulator.model import SimRequest, StepOutput
from loadgen.simulator.protocol_models import (
    ChatBody,
    CompletionBody,
    SamplingBody,
    check_length,
    check_sampling,
    decode,
    single_prompt,
)
from loadgen.simulator.serverspec import ServerSpec
from loadgen.simulator.tokens import IncrementalDecoder, encode, render_chat


class Answer(Protocol):
    """Where an answer goes: an `Exchange`, or one that a fault spoils."""

    @property
    def gone(self) -> bool:
        """True once nothing can be written any more."""

    @property
    def congested(self) -> bool:
        """True while the client reads too slowly."""

    def respond(self, status: int, body: bytes, content_type: str = "application/json") -> None:
        """Sends a whole answer."""

    def open_stream(self) -> None:
        """Sends the head of an event stream."""

    def send(self, data: bytes) -> None:
        """Writes one event."""

    def close_stream(self) -> None:
        """Ends the stream properly."""


@dataclass(frozen=True)
class Parsed:
    """A request that passed all checks."""

    request: SimRequest
    chunks: ChatChunks | CompletionChunks
    stream: bool
    logprobs: int | None
    tokens_as_ids: bool = False
    """Log-probabilities name tokens by their ids."""


def parse_completion(http: HttpRequest, spec: ServerSpec, internal_id: str) -> Parsed:
    """A checked POST /v1/completions; ApiError as vLLM gives it."""
    body = decode(http.body, CompletionBody)
    _check_model(body, spec)
    if body.max_tokens is not None:
        check_length(0, max(body.max_tokens, 1), spec.max_model_len)
    prompt = single_prompt(body.prompt)
    check_sampling(body, spec.speculative, body.logprobs)
    ids = tuple(encode(prompt)) if isinstance(prompt, str) else prompt
    max_tokens = check_length(len(ids), body.max_tokens, spec.max_model_len)
    head = _head("cmpl", http, body, spec, ids)
    return Parsed(
        _engine_request(internal_id, ids, max_tokens, body),
        CompletionChunks(head),
        bool(body.stream),
        body.logprobs,
        bool(body.return_tokens_as_token_ids),
    )


def parse_chat(http: HttpRequest, spec: ServerSpec, internal_id: str) -> Parsed:
    """A checked POST /v1/chat/completions; ApiError as vLLM gives it."""
    body = decode(http.body, ChatBody)
    _check_model(body, spec)
    asked = body.max_completion_tokens if body.max_completion_tokens is not None else body.max_tokens
    param = "max_completion_tokens" if body.max_completion_tokens is not None else "max_tokens"
    if asked is not None:
        check_length(0, max(asked, 1), spec.max_model_len, param)
    logprobs = (body.top_logprobs or 0) if body.logprobs else None
    check_sampling(body, spec.speculative, logprobs)
    if not body.messages:
        raise ApiError("messages must hold at least one message.", param="messages")
    ids = tuple(encode(render_chat([(message.role, message.text) for message in body.messages])))
    max_tokens = check_length(len(ids), asked, spec.max_model_len, param)
    head = _head("chatcmpl", http, body, spec, ids)
    return Parsed(
        _engine_request(internal_id, ids, max_tokens, body),
        ChatChunks(head),
        bool(body.stream),
        logprobs,
        bool(body.return_tokens_as_token_ids),
    )


def _check_model(body: SamplingBody, spec: ServerSpec) -> None:
    if body.model and body.model != spec.model_id:
        raise unknown_model(body.model, spec.model_id)


def _head(prefix: str, http: HttpRequest, body: SamplingBody, spec: ServerSpec, ids: tuple[int, ...]) -> AnswerHead:
    base = http.headers.get("x-request-id") or body.request_id or uuid.uuid4().hex[:16]
    return AnswerHead(
        request_id=f"{prefix}-{base}",
        created=int(time.time()),
        model=spec.model_id,
        fingerprint=spec.fingerprint,
        prompt_token_ids=ids,
        return_token_ids=bool(body.return_token_ids),
        include_usage=body.wants_usage,
        continuous_usage=body.wants_continuous_usage,
    )


def _engine_request(internal_id: str, ids: tuple[int, ...], max_tokens: int, body: SamplingBody) -> SimRequest:
    # As with vLLM, a request without a seed draws anew each time; at temperature 0 a seed plays no part.
    seed = body.seed if body.seed is not None else uuid.uuid4().int >> 65
    return SimRequest(
        request_id=internal_id,
        prompt_token_ids=ids,
        max_tokens=max_tokens,
        temperature=1.0 if body.temperature is None else body.temperature,
        seed=seed,
        ignore_eos=body.ignore_eos,
    )


class SpeculationRecord:
    """Counts the drafts of one request for `--per-request-spec-decode-metrics`."""

    def __init__(self, positions: int, detailed: bool) -> None:
        self._positions = positions
        self._detailed = detailed
        self._steps: list[tuple[int, int]] = []

    def add(self, output: StepOutput) -> None:
        """Counts one step's drafts; steps without a draft do not count."""
        if output.drafted:
            self._steps.append((output.accepted, output.drafted))

    def content(self) -> Mapping[str, Any]:
        """The body's `speculative_decoding`; without any draft the length is 1.0 and the rate 0.0, as in vLLM."""
        accepted = sum(a for a, _ in self._steps)
        drafted = sum(d for _, d in self._steps)
        histogram = [0] * (self._positions + 1)
        for count, _ in self._steps:
            histogram[count] += 1
        found: dict[str, Any] = {
            "mean_acceptance_length": 1.0 + (accepted / len(self._steps) if self._steps else 0.0),
            "draft_acceptance_rate": accepted / drafted if drafted else 0.0,
            "acceptance_histogram": histogram,
            "num_spec_steps": len(self._steps),
            "num_accepted_draft_tokens": accepted,
            "num_draft_tokens": drafted,
            "num_spec_tokens": self._positions,
        }
        if self._detailed:
            found["per_step_accepted"] = [a for a, _ in self._steps]
            found["per_step_drafted"] = [d for _, d in self._steps]
        return found


class Generation:
    """One request being answered: gathers outputs and sends them as one chunk a flush."""

    def __init__(
        self, parsed: Parsed, answer: Answer, spec: ServerSpec, probabilities: LogprobSource | None = None
    ) -> None:
        self.request = parsed.request
        self.stream = parsed.stream
        self._chunks = parsed.chunks
        self._logprobs = parsed.logprobs
        self._as_ids = parsed.tokens_as_ids
        self._probabilities = probabilities
        self._answer = answer
        self._decoder = IncrementalDecoder()
        self._pending: list[int] = []
        self._made = 0
        self._sent_tokens = 0
        self._offset = 0
        self._begun = False
        self._finish_reason: str | None = None
        self._record = (
            SpeculationRecord(spec.num_speculative_tokens, spec.spec_metrics == "detailed")
            if spec.spec_metrics and spec.speculative
            else None
        )

    def begin(self) -> None:
        """Sends the head of a stream; vLLM does so before the first token."""
        if self.stream:
            self._answer.open_stream()

    def take(self, output: StepOutput) -> int:
        """Counts one output as the engine gives it; returns the tokens of the chunk to be sent for it, 0 for none.

        An answer that is not streamed is one chunk, sent at the end.
        """
        self._made += len(output.new_token_ids)
        if self._record is not None:
            self._record.add(output)
        if not self.stream:
            return self._made if output.finish_reason is not None else 0
        return len(output.new_token_ids)

    def send(self, token_ids: tuple[int, ...], finish_reason: str | None) -> None:
        """Sends one output; a client that reads too slowly gets it together with later ones."""
        self._pending.extend(token_ids)
        self._finish_reason = finish_reason
        self.flush()

    def flush(self) -> None:
        """Sends what is pending, unless the connection is congested."""
        if self._answer.gone or (self.stream and self._answer.congested):
            return
        finished = self._finish_reason is not None
        if not self._pending and not finished:
            return
        if self.stream:
            self._send_delta(finished)
            if finished:
                self._end_stream()
        elif finished:
            delta = self._take(finished)
            self._answer.respond(200, self._chunks.whole(delta, self._metrics()))

    def fail(self, error: ApiError) -> None:
        """Ends the answer with an error: in the stream if its 200 is out, else as a status."""
        if self.stream:
            self._answer.send(error.event)
            self._answer.send(DONE)
            self._answer.close_stream()
        else:
            self._answer.respond(error.code, error.body)

    def _send_delta(self, finished: bool) -> None:
        first = not self._begun
        if first:
            self._begun = True
            self._answer.send(self._chunks.first())
        self._answer.send(self._chunks.delta(self._take(finished), first=first))

    def _end_stream(self) -> None:
        if self._chunks.head.include_usage:
            self._answer.send(self._chunks.usage(self._sent_tokens, self._metrics()))
        self._answer.send(DONE)
        self._answer.close_stream()

    def _take(self, finished: bool) -> Delta:
        ids, self._pending = self._pending, []
        logprobs = self._logprobs_of(ids)
        self._sent_tokens += len(ids)
        text = self._decoder.push(ids, final=finished)
        return Delta(text, ids, self._sent_tokens, self._finish_reason, logprobs)

    def _logprobs_of(self, ids: list[int]) -> bytes:
        source = self._probabilities
        if self._logprobs is None or source is None:
            return b"null"
        if isinstance(self._chunks, ChatChunks):
            return chat_logprobs(source, ids, self._sent_tokens, self._logprobs, as_ids=self._as_ids)
        made, self._offset = completion_logprobs(
            source, ids, self._sent_tokens, self._logprobs, self._offset, as_ids=self._as_ids
        )
        return made

    def _metrics(self) -> Mapping[str, Any] | None:
        return None if self._record is None else self._record.content()
