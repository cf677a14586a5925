"""One request as it was seen from outside: the unit of everything that is measured."""

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise


class Outcome(StrEnum):
    """How a request ended. Only OK counts in latency and throughput."""

    OK = "ok"
    CANCELLED = "cancelled"
    EMPTY = "empty"
    STREAM_ERROR = "stream_error"
    INCOMPLETE_STREAM = "incomplete_stream"
    SHORT_OUTPUT = "short_output"
    TRANSPORT_ERROR = "transport_error"
    CONNECT_ERROR = "connect_error"
    TIMEOUT = "timeout"
    INVALID_REQUEST = "invalid_request"
    UNAUTHORIZED = "unauthorized"
    NOT_FOUND = "not_found"
    OVERLOAD = "overload"
    SERVER_ERROR = "server_error"
    CLIENT_ERROR = "client_error"


@dataclass(frozen=True)
class RequestRecord:
    """One request. Times are seconds on the monotonic clock (`loadgen.clock.now_s`); None where it never came to be."""

    prompt_id: str
    worker: int
    outcome: Outcome
    start_s: float
    """Just before the request's bytes were written, after the concurrency slot was held."""
    end_s: float
    """When the response had ended, or the failure was known."""
    queued_s: float = 0.0
    """Waited for a slot in the client, before `start_s`."""
    scheduled_s: float | None = None
    """When an open-loop schedule wanted it to start."""
    first_token_s: float | None = None
    last_token_s: float | None = None
    first_answer_s: float | None = None
    """First event with content that is not reasoning."""
    prompt_tokens: int | None = None
    output_tokens: int = 0
    token_source: str = "server"
    """`server` (final usage), `token_ids` (no usage came, but ids did), `chunks` (estimated: one per token-bearing
    event), `none`."""
    chunk_times_s: tuple[float, ...] = ()
    """Arrival of each token-bearing event; events of one network read share a time."""
    chunk_tokens: tuple[int, ...] | None = None
    """Tokens per token-bearing event where the server says so (continuous usage, token ids); else None."""
    finish_reason: str | None = None
    http_status: int | None = None
    error: str | None = None
    attempts: int = 1
    text: str | None = None
    """The output text, kept only when asked for."""
    token_ids: tuple[int, ...] | None = None
    text_sha256: str | None = None
    repeated_ngram_share: float | None = None
    """Share of the output's word 4-grams that occurred earlier in it: 0 = never, near 1 = a loop."""
    spec_decode: dict[str, float] | None = None
    """vLLM's own per-request figures (`metrics.speculative_decoding`), where the server sends them."""
    warnings: tuple[str, ...] = ()

    @property
    def ttft_s(self) -> float | None:
        """Seconds from the send to the first token-bearing event."""
        return None if self.first_token_s is None else self.first_token_s - self.start_s

    @property
    def e2e_s(self) -> float | None:
        """Seconds from the send to the last token-bearing event: never the usage event, never `[DONE]`."""
        return None if self.last_token_s is None else self.last_token_s - self.start_s

    @property
    def tpot_s(self) -> float | None:
        """(E2E − TTFT) / (tokens − 1), None below two tokens."""
        if self.first_token_s is None or self.last_token_s is None or self.output_tokens < 2:
            return None
        return (self.last_token_s - self.first_token_s) / (self.output_tokens - 1)

    @property
    def tpot_after_first_chunk_s(self) -> float | None:
        """(E2E − TTFT) / (tokens − tokens of the first event): differs from `tpot_s` if the first event holds several
        tokens (case C27). None without tokens per event, or if all came in the first.
        """
        if self.chunk_tokens is None or self.first_token_s is None or self.last_token_s is None:
            return None
        later = sum(self.chunk_tokens[1:])
        return (self.last_token_s - self.first_token_s) / later if later > 0 else None

    @property
    def chunk_gaps_s(self) -> tuple[float, ...]:
        """Times between neighbouring token-bearing events; the TTFT is not among them (case C25)."""
        return tuple(after - before for before, after in pairwise(self.chunk_times_s))

    @property
    def ttft_from_schedule_s(self) -> float | None:
        """TTFT from the scheduled start: no coordinated omission. None if unscheduled."""
        if self.first_token_s is None or self.scheduled_s is None:
            return None
        return self.first_token_s - self.scheduled_s

    @property
    def e2e_from_schedule_s(self) -> float | None:
        """E2E from the scheduled start. None if unscheduled."""
        if self.last_token_s is None or self.scheduled_s is None:
            return None
        return self.last_token_s - self.scheduled_s
