"""What the events of one response say, gathered event by event.

Token-bearing is an event whose choice shows text, reasoning or a tool call, or whose continuous usage grew.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from loadgen.load.openai import Choice, Delta, Reply, Usage, error_text, parse_reply
from loadgen.load.sse import Event


@dataclass(slots=True)
class Reading:
    """Counts, times and text of one response so far."""

    chunk_times_s: list[float] = field(default_factory=list)
    chunk_usage: dict[int, int] = field(default_factory=dict)
    """`completion_tokens` of the token-bearing events that had it, by their place."""
    chunk_ids: dict[int, int] = field(default_factory=dict)
    """Token ids that came with each token-bearing event (those of the silent events before it included), by its place;
    none where there were none."""
    first_answer_s: float | None = None
    text: list[str] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    saw_ids: bool = False
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    error: str | None = None
    done: bool = False
    events: int = 0
    spec_decode: dict[str, float] | None = None
    _continuous: bool = False
    _silent_ids: int = 0

    def event(self, event: Event) -> None:
        """Takes one SSE event; whatever follows `[DONE]` is dropped."""
        if self.done:
            return
        self.events += 1
        if event.data.strip() == b"[DONE]":
            self.done = True
            return
        reply = parse_reply(event.data)
        if event.name == b"error":
            self._fail(error_text(reply, event.data[:300].decode("utf-8", "replace")))
        elif reply is None:
            shown = event.data[:120].decode("utf-8", "replace")
            self._fail(f"event {self.events} is not a JSON chunk: {shown}")
        else:
            self._chunk(reply, event.time_s)

    def body(self, replies: Sequence[Reply], times_s: Sequence[float]) -> None:
        """Takes the events of a whole body that `[DONE]` ended. Nearly every event shows some text and nothing else:
        such a one is taken in this frame, by the same rules as in `reply`.
        """
        times, text = self.chunk_times_s, self.text
        for reply, time_s in zip(replies, times_s, strict=True):
            choices = reply.choices
            if choices and len(choices) == 1 and reply.usage is None and not reply.error and reply.metrics is None:
                choice = choices[0]
                shown = _only_text(choice)
                if shown and not self._silent_ids:
                    times.append(time_s)
                    text.append(shown)
                    if self.first_answer_s is None:
                        self.first_answer_s = time_s
                    continue
            self._chunk(reply, time_s)
        self.events += len(replies) + 1
        self.done = True

    def _chunk(self, reply: Reply, time_s: float) -> None:
        """Takes a parsed event, which may be an error."""
        if reply.error or (reply.choices is None and reply.usage is None and (reply.message or reply.detail)):
            self._fail(error_text(reply, "the server reported an error"))
        else:
            self.reply(reply, time_s)

    def reply(self, reply: Reply, time_s: float) -> None:
        """Takes one parsed chunk, or a whole reply that was not streamed."""
        bearing = False
        ids = 0
        for choice in reply.choices or ():
            shown = self._choice(choice, time_s)
            bearing = bearing or shown
            if choice.token_ids is not None:
                self.saw_ids = True
                self.token_ids.extend(choice.token_ids)
                ids += len(choice.token_ids)
        usage = reply.usage
        count = usage.completion_tokens if usage else None
        if reply.choices and count is not None:
            # growth proves tokens only where usage is continuous: the last event's total alone proves nothing
            bearing = bearing or (self._continuous and count > (self.completion_tokens or 0))
            self._continuous = True
        if bearing:
            place = len(self.chunk_times_s)
            self.chunk_times_s.append(time_s)
            if count is not None:
                self.chunk_usage[place] = count
            if ids + self._silent_ids:
                self.chunk_ids[place] = ids + self._silent_ids
            self._silent_ids = 0
        else:
            self._silent_ids += ids
        self._take_usage(usage)
        if reply.metrics:
            self._take_metrics(reply.metrics)

    def _choice(self, choice: Choice, time_s: float) -> bool:
        """True if the choice shows at least one token."""
        delta = choice.delta or choice.message
        answer = choice.text or (delta.content if delta else None)
        if choice.finish_reason:
            self.finish_reason = choice.finish_reason
            if choice.finish_reason in ("error", "abort"):
                self._fail(f"the server ended the request with finish_reason {choice.finish_reason!r}")
        thought = (delta.reasoning or delta.reasoning_content) if delta else None
        tool = _tool_text(delta) if delta and delta.tool_calls else ""
        if thought:
            self.text.append(thought)
        if answer:
            self.text.append(answer)
        if tool:
            self.text.append(tool)
        if (answer or tool) and self.first_answer_s is None:
            self.first_answer_s = time_s
        return bool(answer or thought or tool)

    def _take_usage(self, usage: Usage | None) -> None:
        """The last value wins; values are never added up (case C11)."""
        if usage is None:
            return
        if usage.completion_tokens is not None:
            self.completion_tokens = usage.completion_tokens
        if usage.prompt_tokens is not None:
            self.prompt_tokens = usage.prompt_tokens

    def _take_metrics(self, metrics: dict[str, Any]) -> None:
        spec = metrics.get("speculative_decoding")
        if isinstance(spec, dict):
            self.spec_decode = _flat_numbers(spec)

    def _fail(self, text: str) -> None:
        if self.error is None:
            self.error = text

    def chunk_tokens(self) -> tuple[int, ...] | None:
        """Tokens per token-bearing event where the server told them for each; else None."""
        if not self.chunk_times_s:
            return None
        places = range(len(self.chunk_times_s))
        if self.chunk_ids:
            counts = [self.chunk_ids.get(place, 0) for place in places]
            counts[-1] += self._silent_ids
            return tuple(counts)
        if len(self.chunk_usage) < len(places):
            return None
        totals = list(self.chunk_usage.values())
        return tuple(now - before for before, now in zip([0, *totals], totals, strict=False))


def _only_text(choice: Choice) -> str | None:
    """The text of a choice that holds nothing else; None if it does, or may."""
    if choice.finish_reason is not None or choice.token_ids is not None or choice.message is not None:
        return None
    delta = choice.delta
    if delta is None:
        return choice.text
    if choice.text is not None or delta.tool_calls is not None:
        return None
    return delta.content if delta.reasoning is None and delta.reasoning_content is None else None


def _tool_text(delta: Delta) -> str:
    calls = (call.function for call in delta.tool_calls or ())
    return "".join(f"{f.name or ''}{f.arguments or ''}" for f in calls if f)


def _flat_numbers(values: dict[str, Any]) -> dict[str, float]:
    """The numbers of vLLM's per-request figures; a list's items as `name_0`, `name_1`, …"""
    flat: dict[str, float] = {}
    for name, value in values.items():
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
        pairs = [(name, value)] if items is None else [(f"{name}_{key}", item) for key, item in items]
        flat.update({key: float(item) for key, item in pairs if isinstance(item, int | float)})
    return flat
