"""Part A of the public cases: what a stream means."""

from dataclasses import replace
from typing import Any

import pytest

from loadgen.load.arrivals import Arrivals, End
from loadgen.load.decode import Asked, decode, repeated_ngram_share
from loadgen.load.record import Outcome, RequestRecord
from loadgen.load.warmup import run_warmup

ASKED = Asked("p", max_tokens=16, keep_text=True)
SSE = [(b"Content-Type", b"text/event-stream; charset=utf-8")]


def arrivals_of(
    timed: list[tuple[float, bytes]],
    *,
    end: End = End.COMPLETE,
    status: int = 200,
    headers: list[tuple[bytes, bytes]] = SSE,
    error: str | None = None,
) -> Arrivals:
    arrivals = Arrivals(sent_s=0.0, status=status, headers=headers, attempts=1)
    for time_s, block in timed:
        arrivals.add(time_s, block)
    arrivals.end(end, timed[-1][0] if timed else 0.0, error)
    return arrivals


def read(*timed: tuple[float, bytes], asked: Asked = ASKED, **options: Any) -> RequestRecord:
    return decode(arrivals_of(list(timed), **options), asked)


def stream(*blocks: bytes, asked: Asked = ASKED, **options: Any) -> RequestRecord:
    return read(*((float(i + 1), block) for i, block in enumerate(blocks)), asked=asked, **options)


def test_c01_multibyte_character_cut_by_a_chunk_edge(chunks: Any) -> None:
    body = chunks.text("日本")
    cut = body.index(b"\xe6") + 1
    record = stream(body[:cut], body[cut:], chunks.done)
    assert record.text == "日本"
    assert len(record.chunk_times_s) == 1
    assert record.outcome is Outcome.OK


def test_c02_chunk_edge_inside_data_or_before_white_space(chunks: Any) -> None:
    parts = [b"data:", b' {"choices":[{"index":0,"delta":{"content":"A', b' B C"}}]}\n\n', chunks.done]
    assert stream(*parts).text == "A B C"
    whole = b"".join(parts)
    bytewise = [whole[i : i + 1] for i in range(len(whole))]
    assert stream(*bytewise).text == "A B C"


def test_c03_crlf_cut_in_two_gives_the_same_record(chunks: Any) -> None:
    body = b"".join([chunks.text("日本"), chunks.fin("stop"), chunks.usage(3, 2), chunks.done])
    plain = read((1.0, body))
    for end in (b"\r\n", b"\r"):
        other = body.replace(b"\n", end)
        for cut in range(len(other) + 1):
            assert read((1.0, other[:cut]), (1.0, other[cut:])) == plain


def test_c04_data_without_space_and_with_two(chunks: Any) -> None:
    event = b'{"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
    assert stream(b"data:" + event, b"data:  " + event, chunks.done).text == "xx"


def test_c05_comments_are_no_tokens(chunks: Any) -> None:
    record = read((0.1, b": keep-alive\n\n"), (0.2, b":\n\n"), (0.5, b": x\n" + chunks.text("A")), (0.6, chunks.done))
    assert (record.text, record.ttft_s) == ("A", 0.5)


def test_c06_line_separators_inside_json(chunks: Any) -> None:
    text = "a\u2028b\u2029c\x85d"
    assert stream(chunks.text(text), chunks.done).text == text


def test_c07_one_event_of_several_data_lines(chunks: Any) -> None:
    body = b'event: chunk\nid: 7\ndata: {"choices":[{"index":0,\ndata: "delta":{"content":"ok"}}]}\n\n'
    assert stream(b"\xef\xbb\xbf" + body, chunks.done).text == "ok"


def test_c08_many_events_in_one_read(chunks: Any) -> None:
    body = b"".join(chunks.text(f"{i} ") for i in range(20))
    record = read((0.5, body), (0.6, chunks.fin("stop") + chunks.usage(3, 20) + chunks.done))
    assert record.output_tokens == len(record.chunk_times_s) == 20
    assert set(record.chunk_gaps_s) == {0.0}
    assert record.tpot_s == 0.0


def test_c09_buffered_replies_are_named(chunks: Any) -> None:
    late = [(1.0, chunks.text("x")) for _ in range(9)]
    record = read(*late, (1.01, chunks.fin("stop") + chunks.usage(3, 9) + chunks.done))
    assert any(w.startswith("buffered") for w in record.warnings)
    early = read((0.1, chunks.text("x")), *late[:8], (1.01, chunks.fin("stop") + chunks.usage(3, 9) + chunks.done))
    assert not early.warnings
    short = [(1.0 + 0.001 * i, chunks.text("x")) for i in range(9)]  # a long prefill before a short reply
    assert not read(*short, (1.01, chunks.fin("stop") + chunks.usage(3, 9) + chunks.done)).warnings


def test_c10_usage_event_without_choices(chunks: Any) -> None:
    record = read((0.1, chunks.text("A")), (0.2, chunks.fin("stop")), (0.3, chunks.usage(3, 1)), (0.4, chunks.done))
    assert (record.output_tokens, record.prompt_tokens, record.e2e_s) == (1, 3, 0.1)
    assert record.token_source == "server"
    assert record.warnings == ()


def test_c11_usage_on_every_chunk_on_the_last_or_null(chunks: Any) -> None:
    def usage(n: int) -> dict[str, int]:
        return {"prompt_tokens": 3, "completion_tokens": n, "total_tokens": 3 + n}

    every = [chunks.text("x", usage=usage(n)) for n in (1, 4, 7)]
    record = stream(*every, chunks.fin("stop"), chunks.done)
    assert (record.output_tokens, record.chunk_tokens) == (7, (1, 3, 3))
    last = stream(chunks.text("a", usage=None), chunks.e({"content": "b"}, "stop", usage=usage(7)), chunks.done)
    assert (last.output_tokens, last.chunk_tokens, last.token_source) == (7, None, "server")
    finish = stream(chunks.text("a"), chunks.e({}, "stop", usage=usage(7)), chunks.done)
    assert len(finish.chunk_times_s) == 1  # a total on the finish event proves no token in it


def test_c11_growing_continuous_usage_is_a_token_without_text(chunks: Any) -> None:
    def usage(n: int) -> dict[str, int]:
        return {"prompt_tokens": 3, "completion_tokens": n}

    record = read(
        (0.1, chunks.e({"role": "assistant", "content": ""}, usage=usage(0))),
        (0.2, chunks.text("a", usage=usage(1))),
        (0.3, chunks.e({"content": ""}, "stop", usage=usage(2))),
        (0.4, chunks.usage(3, 2)),
        (0.5, chunks.done),
    )
    assert record.chunk_times_s == (0.2, 0.3)
    assert record.chunk_tokens == (1, 1)


def test_c12_no_usage_is_estimated_and_said(chunks: Any) -> None:
    record = stream(chunks.text("a"), chunks.text("b"), chunks.fin("stop"), chunks.done)
    assert (record.output_tokens, record.token_source, record.outcome) == (2, "chunks", Outcome.OK)
    assert any(w.startswith("estimated") for w in record.warnings)


def test_token_ids_count_where_usage_is_missing() -> None:
    def event(text: str, ids: list[int]) -> bytes:
        return (
            b'data: {"choices":[{"index":0,"delta":{"content":"%s"},"token_ids":%s}]}\n\n'
            % (text.encode(), str(ids).encode())
        )  # fmt: skip

    record = stream(event("", [5]), event("a", [1, 2]), event("b", [3]), event("", [2]), b"data: [DONE]\n\n")
    assert (record.output_tokens, record.token_source) == (5, "token_ids")
    assert record.chunk_tokens == (3, 2)
    assert record.token_ids == (5, 1, 2, 3, 2)


def test_c13_error_after_tokens_is_a_failure(chunks: Any) -> None:
    bad = b'data: {"error":{"message":"engine died","type":"InternalServerError","param":null,"code":500}}\n\n'
    record = stream(chunks.text("par"), bad, chunks.done)
    assert record.outcome is Outcome.STREAM_ERROR
    assert record.error == "engine died (code 500)"
    assert (record.text, record.output_tokens) == ("par", 1)


@pytest.mark.parametrize(
    "body",
    [b'data: {"error":"overloaded"}\n\n', b'event: error\ndata: {"message":"x"}\n\n', b"event: error\ndata: boom\n\n"],
)
def test_c14_error_first_as_string_or_as_event(body: bytes, chunks: Any) -> None:
    record = stream(body, chunks.done)
    assert record.outcome is Outcome.STREAM_ERROR
    assert record.error in ("overloaded", "x", "boom")


def test_c15_a_stream_that_ends_early_but_cleanly(chunks: Any) -> None:
    assert stream(chunks.text("one")).outcome is Outcome.INCOMPLETE_STREAM
    without_done = stream(chunks.text("one"), chunks.fin("stop"), chunks.usage(3, 1))
    assert without_done.outcome is Outcome.OK
    assert any("[DONE]" in w for w in without_done.warnings)
    forced = replace(ASKED, ignore_eos=True, max_tokens=16)
    short = stream(chunks.text("one"), chunks.fin("stop"), chunks.usage(3, 9), chunks.done, asked=forced)
    assert short.outcome is Outcome.SHORT_OUTPUT
    full = stream(chunks.text("one"), chunks.fin("length"), chunks.usage(3, 16), chunks.done, asked=forced)
    assert full.outcome is Outcome.OK


def test_c15_a_page_of_html_is_no_stream() -> None:
    record = read((1.0, b"<html>Welcome</html>"), headers=[(b"content-type", b"text/html")])
    assert record.outcome is Outcome.INCOMPLETE_STREAM
    assert "Welcome" in (record.error or "")


async def test_c16_connection_dropped_in_the_middle(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any
) -> None:
    async def script(seen: Any, reply: Any) -> bool:
        await reply.raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for block in (chunks.text("a"), chunks.text("b")):
            await reply.raw(b"%x\r\n%s\r\n" % (len(block), block))
        return False

    server = await start_server(script)
    (record,) = (await run_warmup(target_of(server, keep_text=True), make_prompts(1), 1)).records
    assert record.outcome is Outcome.TRANSPORT_ERROR
    assert record.text == "ab"
    assert record.attempts == 1


def test_c16_a_break_after_done_loses_nothing(chunks: Any) -> None:
    body = [chunks.text("a"), chunks.fin("stop"), chunks.usage(3, 1), chunks.done]
    record = stream(*body, end=End.CLOSED, error="reset")
    assert record.outcome is Outcome.OK
    assert any("after [DONE]" in w for w in record.warnings)
    assert stream(*body[:-1], end=End.CLOSED, error="reset").outcome is Outcome.TRANSPORT_ERROR


@pytest.mark.parametrize("content", ["", None])
def test_c17_role_chunk_is_not_the_first_token(chunks: Any, content: str | None) -> None:
    record = read((0.005, chunks.role(content)), (0.214, chunks.text("hi")), (0.3, chunks.done))
    assert record.ttft_s == 0.214


def test_c18_reasoning_under_either_name(chunks: Any) -> None:
    record = read(
        (0.1, chunks.e({"reasoning": "r1"})),
        (0.15, chunks.e({"reasoning_content": "r2"})),
        (0.9, chunks.text("42")),
        (1.0, chunks.usage(5, 9) + chunks.done),
    )
    assert (record.ttft_s, record.first_answer_s, record.output_tokens) == (0.1, 0.9, 9)


def test_c19_tool_call_only(chunks: Any) -> None:
    def call(function: dict[str, str]) -> bytes:
        return bytes(chunks.e({"tool_calls": [{"index": 0, "function": function}]}))

    record = read(
        (0.08, call({"name": "f", "arguments": ""})),
        (0.09, call({"arguments": "{}"})),
        (0.1, chunks.fin("tool_calls") + chunks.usage(5, 6) + chunks.done),
    )
    assert (record.outcome, record.ttft_s, record.e2e_s) == (Outcome.OK, 0.08, 0.09)
    assert record.output_tokens == 6


def test_c20_tokens_that_never_show(chunks: Any) -> None:
    record = stream(chunks.role(), chunks.fin("length"), chunks.usage(5, 16), chunks.done)
    assert (record.outcome, record.output_tokens) == (Outcome.OK, 16)
    assert record.ttft_s is record.tpot_s is record.e2e_s is None
    assert any(w.startswith("no_visible_token") for w in record.warnings)


def test_c21_empty_reply(chunks: Any) -> None:
    record = stream(chunks.role(), chunks.fin("stop"), chunks.usage(5, 0), chunks.done)
    assert record.outcome is Outcome.EMPTY
    assert record.ttft_s is None


@pytest.mark.parametrize(
    ("status", "body", "outcome", "text"),
    [
        (401, b'{"error":"Unauthorized"}', Outcome.UNAUTHORIZED, "Unauthorized"),
        (403, b"", Outcome.UNAUTHORIZED, "an empty body"),
        (404, b'{"error":{"message":"no model","code":404}}', Outcome.NOT_FOUND, "no model (code 404)"),
        (400, b'{"error":{"message":"too long","type":"BadRequestError"}}', Outcome.INVALID_REQUEST, "too long"),
        (422, b'{"detail":[{"loc":["body"]}]}', Outcome.INVALID_REQUEST, '[{"loc":["body"]}]'),
        (429, b"slow down", Outcome.OVERLOAD, "slow down"),
        (503, b'{"error":{"message":"busy","code":503}}', Outcome.OVERLOAD, "busy (code 503)"),
        (500, b'{"message":"EngineCore died","code":500}', Outcome.SERVER_ERROR, "EngineCore died (code 500)"),
        (307, b"", Outcome.CLIENT_ERROR, "an empty body"),
    ],
)
def test_http_errors_have_a_category_and_the_servers_words(
    status: int, body: bytes, outcome: Outcome, text: str
) -> None:
    record = read((1.0, body), status=status, headers=[(b"content-type", b"application/json")])
    assert (record.outcome, record.error, record.http_status) == (outcome, text, status)


def test_a_redirect_names_its_target() -> None:
    record = read((1.0, b""), status=308, headers=[(b"Location", b"http://other/v1")])
    assert record.outcome is Outcome.CLIENT_ERROR
    assert "http://other/v1" in (record.error or "")


def test_a_reply_that_was_not_streamed_counts_with_a_warning() -> None:
    body = (
        b'{"choices":[{"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],'
        b'"usage":{"prompt_tokens":4,"completion_tokens":2}}'
    )
    record = read((0.4, body[:20]), (0.5, body[20:]), headers=[(b"content-type", b"application/json")])
    assert (record.outcome, record.text, record.output_tokens) == (Outcome.OK, "hello", 2)
    assert record.ttft_s == record.e2e_s == 0.5
    assert any("not streamed" in w for w in record.warnings)
    bad = read((0.5, b'{"error":"nope"}'), headers=[(b"content-type", b"application/json")])
    assert (bad.outcome, bad.error) == (Outcome.STREAM_ERROR, "nope")


def test_per_request_spec_figures_are_kept(chunks: Any) -> None:
    spec = {"mean_acceptance_length": 2.5, "acceptance_histogram": [1, 4], "num_spec_steps": 5, "method": "ngram"}
    record = stream(
        chunks.text("a"), chunks.fin("stop"), chunks.usage(3, 1, metrics={"speculative_decoding": spec}), chunks.done
    )
    assert record.spec_decode == {
        "mean_acceptance_length": 2.5,
        "acceptance_histogram_0": 1.0,
        "acceptance_histogram_1": 4.0,
        "num_spec_steps": 5.0,
    }


def test_a_line_that_is_no_json_is_a_stream_error(chunks: Any) -> None:
    record = stream(chunks.text("a"), b"data: {bad\n\n", chunks.done)
    assert record.outcome is Outcome.STREAM_ERROR
    assert "{bad" in (record.error or "")


def test_repeated_ngrams() -> None:
    assert repeated_ngram_share("a b c") is None
    assert repeated_ngram_share("a b c d e f g") == 0.0
    assert (repeated_ngram_share("a b c d " * 50) or 0) > 0.9


def test_a_key_that_a_server_repeats_in_its_error_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hunter2-very-long")
    body = b'{"error": {"message": "Incorrect API key provided: sk-hunter2-very-long."}}'
    record = read((1.0, body), status=401, headers=[(b"Content-Type", b"application/json")])
    assert record.error == "Incorrect API key provided: ***."
