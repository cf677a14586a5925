"""Arrivals to a RequestRecord, after the window: SSE, JSON, outcome, warnings."""

import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from loadgen.engines.credentials import masked
from loadgen.load.arrivals import Arrivals, End
from loadgen.load.categories import broken_outcome, status_outcome
from loadgen.load.openai import error_text, parse_reply
from loadgen.load.plain import plain_replies
from loadgen.load.reading import Reading
from loadgen.load.record import Outcome, RequestRecord
from loadgen.load.sse import SseDecoder

BUFFERED_SHARE = 0.95
BUFFERED_MIN_TOKENS = 8


@dataclass(frozen=True)
class Asked:
    """What was asked of the server, as far as the verdict on the reply depends on it."""

    prompt_id: str
    max_tokens: int | None = None
    ignore_eos: bool = False
    keep_text: bool = False


class Slot(NamedTuple):
    """Who sent a request, and how long it had to wait."""

    worker: int = 0
    queued_s: float = 0.0
    scheduled_s: float | None = None


_NO_SLOT = Slot()


def decode(arrivals: Arrivals, asked: Asked, slot: Slot = _NO_SLOT) -> RequestRecord:
    """The record of one exchange. Pure; costs a few microseconds per event, so it runs after the window."""
    warnings: list[str] = []
    reading = Reading()
    if arrivals.status == 200:
        _read_body(arrivals, reading, warnings)
    outcome, error = _verdict(arrivals, reading, asked, warnings)
    tokens, source = _count(reading)
    first = reading.chunk_times_s[0] if reading.chunk_times_s else None
    last = reading.chunk_times_s[-1] if reading.chunk_times_s else None
    if outcome is Outcome.OK:
        _add_warnings(arrivals, reading, tokens, source, warnings)
    text = "".join(reading.text)
    return RequestRecord(
        prompt_id=asked.prompt_id,
        worker=slot.worker,
        outcome=outcome,
        start_s=arrivals.sent_s,
        end_s=arrivals.ended_s,
        queued_s=slot.queued_s,
        scheduled_s=slot.scheduled_s,
        first_token_s=first,
        last_token_s=last,
        first_answer_s=reading.first_answer_s,
        prompt_tokens=reading.prompt_tokens,
        output_tokens=tokens,
        token_source=source,
        chunk_times_s=tuple(reading.chunk_times_s),
        chunk_tokens=reading.chunk_tokens(),
        finish_reason=reading.finish_reason,
        http_status=arrivals.status,
        error=masked(error) if error else error,
        attempts=max(arrivals.attempts, 1),
        text=text if asked.keep_text else None,
        token_ids=tuple(reading.token_ids) if reading.saw_ids else None,
        text_sha256=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() if text else None,
        repeated_ngram_share=repeated_ngram_share(text),
        spec_decode=reading.spec_decode,
        warnings=tuple(warnings),
    )


def repeated_ngram_share(text: str, n: int = 4) -> float | None:
    """Share of the text's word n-grams that occurred earlier in it: 0 = never, near 1 = a loop; None below n words."""
    words = text.split()
    if len(words) < n:
        return None
    grams = set(zip(*(words[i:] for i in range(n)), strict=False))
    return 1.0 - len(grams) / (len(words) - n + 1)


def _read_body(arrivals: Arrivals, reading: Reading, warnings: list[str]) -> None:
    kind = (arrivals.header(b"content-type") or b"").lower()
    if kind.startswith(b"application/json"):
        _read_whole(arrivals, reading, warnings)
        return
    if arrivals.header(b"content-encoding") is None:
        plain = plain_replies(arrivals.blocks, arrivals.times_s)
        if plain is not None:
            reading.body(*plain)
            return
    decoder = SseDecoder()
    for time_s, block in _plain_blocks(arrivals, warnings):
        for event in decoder.feed(block, time_s):
            reading.event(event)
    if decoder.unfinished:
        warnings.append("the stream ended inside an event; that part was dropped")


def _read_whole(arrivals: Arrivals, reading: Reading, warnings: list[str]) -> None:
    """A reply that was not streamed: one event at its last byte."""
    body = b"".join(block for _, block in _plain_blocks(arrivals, warnings))
    reply = parse_reply(body)
    if reply is None or reply.error or not reply.choices:
        reading.error = error_text(reply, f"the reply is not a completion: {_shown(body)}")
        return
    warnings.append("the reply was not streamed: its TTFT is its E2E, and it has no chunk times")
    reading.reply(reply, arrivals.times_s[-1])
    reading.done = True


def _plain_blocks(arrivals: Arrivals, warnings: list[str]) -> Iterator[tuple[float, bytes]]:
    """(time, bytes) of each read, content coding removed read by read."""
    coding = (arrivals.header(b"content-encoding") or b"identity").strip().lower()
    pairs = zip(arrivals.times_s, arrivals.blocks, strict=True)
    if coding == b"identity":
        yield from pairs
        return
    warnings.append(f"the server sent {coding.decode('latin-1')} although identity was asked for: times are blurred")
    if coding not in (b"gzip", b"x-gzip", b"deflate"):
        return
    # some servers send deflate without its zlib header: CMF 0x78 is what the header starts with in practice
    raw = coding == b"deflate" and arrivals.blocks[:1] != [] and not arrivals.blocks[0].startswith(b"\x78")
    inflate = zlib.decompressobj(-zlib.MAX_WBITS if raw else zlib.MAX_WBITS | 32)
    for time_s, block in pairs:
        try:
            plain = inflate.decompress(block)
        except zlib.error:
            warnings.append("the compressed body is damaged; the rest was dropped")
            return
        yield time_s, plain


def _verdict(arrivals: Arrivals, reading: Reading, asked: Asked, warnings: list[str]) -> tuple[Outcome, str | None]:
    """(outcome, error text), judged in this order: cancelled, status, in-band error, wire, stream, tokens."""
    if arrivals.ended is End.CANCELLED:
        return Outcome.CANCELLED, arrivals.error
    if arrivals.status is not None and arrivals.status != 200:
        return status_outcome(arrivals.status), _error_body(arrivals, warnings)
    if reading.error is not None:
        return Outcome.STREAM_ERROR, reading.error
    if arrivals.ended is not End.COMPLETE:
        if not (reading.done and arrivals.ended is End.CLOSED):
            return broken_outcome(arrivals.ended), arrivals.error
        warnings.append("the connection broke after [DONE]")
    return _stream_verdict(arrivals, reading, asked, warnings)


def _stream_verdict(
    arrivals: Arrivals, reading: Reading, asked: Asked, warnings: list[str]
) -> tuple[Outcome, str | None]:
    """The verdict on a stream that came through whole."""
    if not reading.done:
        if reading.finish_reason is None:
            return Outcome.INCOMPLETE_STREAM, _incomplete(arrivals, reading)
        warnings.append("the stream had no [DONE]")
    tokens, source = _count(reading)
    if tokens == 0 and not reading.chunk_times_s:
        return Outcome.EMPTY, "the server produced no token"
    if asked.ignore_eos and asked.max_tokens is not None and source != "chunks" and tokens < asked.max_tokens:
        return Outcome.SHORT_OUTPUT, f"{tokens} tokens although ignore_eos asked for {asked.max_tokens}"
    return Outcome.OK, None


def _error_body(arrivals: Arrivals, warnings: list[str]) -> str:
    location = arrivals.header(b"location")
    if arrivals.status is not None and 300 <= arrivals.status < 400 and location:
        return f"the server redirects to {location.decode('latin-1')}: give that address"
    body = b"".join(block for _, block in _plain_blocks(arrivals, warnings))
    return error_text(parse_reply(body), _shown(body) or "an empty body")


def _incomplete(arrivals: Arrivals, reading: Reading) -> str:
    if reading.events:
        return f"the stream ended after {reading.events} events without finish_reason and [DONE]"
    body = arrivals.blocks[0] if arrivals.blocks else b""
    return f"the reply holds no event: {_shown(body) or 'it is empty'}"


def _count(reading: Reading) -> tuple[int, str]:
    """(output tokens, where the number comes from)."""
    if reading.completion_tokens is not None:
        return reading.completion_tokens, "server"
    if reading.saw_ids and reading.token_ids:
        return len(reading.token_ids), "token_ids"
    if reading.chunk_times_s:
        return len(reading.chunk_times_s), "chunks"
    return 0, "none"


def _add_warnings(arrivals: Arrivals, reading: Reading, tokens: int, source: str, warnings: list[str]) -> None:
    times = reading.chunk_times_s
    if arrivals.coarse:
        warnings.append("sent through a proxy or another transport: its times are coarser than our own")
    if not times:
        warnings.append("no_visible_token: the server counted tokens but showed none, so there is no TTFT and no TPOT")
    elif _is_buffered(arrivals, times, tokens):
        warnings.append("buffered: the whole reply came at its end, so TTFT and TPOT are not valid")
    if source == "chunks":
        warnings.append("estimated: the server sent no usage, so tokens are counted as one per event")
    if reading.finish_reason is None:
        warnings.append("the stream had no finish_reason")


def _is_buffered(arrivals: Arrivals, times: list[float], tokens: int) -> bool:
    """True if something between server and client held the reply back (case C09). Without a content coding a late
    first token may just be a long prefill before a short reply, so there the events must share a read or two as well.
    """
    if tokens <= BUFFERED_MIN_TOKENS or times[0] - arrivals.sent_s < BUFFERED_SHARE * (times[-1] - arrivals.sent_s):
        return False
    coded = (arrivals.header(b"content-encoding") or b"identity").lower() != b"identity"
    return coded or (len(times) > BUFFERED_MIN_TOKENS and len(set(times)) <= 2)


def _shown(body: bytes) -> str:
    return body[:300].decode("utf-8", "replace").strip()
