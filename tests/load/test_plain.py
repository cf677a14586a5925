"""Both ways through a body, the whole one and event by event, give the same record; the whole one refuses any doubt."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.load import decode as decoding
from loadgen.load.arrivals import Arrivals, End
from loadgen.load.decode import Asked, decode
from loadgen.load.plain import plain_replies
from loadgen.load.record import RequestRecord
from loadgen.load.replay import load_file

CAPTURES = Path(__file__).parent.parent / "data" / "captures"
BODIES = sorted(CAPTURES.rglob("*.sse")) + sorted(CAPTURES.rglob("*.http"))
ASKED = Asked("p", keep_text=True)
USAGE = {"prompt_tokens": 3, "completion_tokens": 2}


def body_of(path: Path) -> bytes:
    return b"".join(load_file(path)[0].blocks)


def cut(body: bytes, cuts: list[int]) -> Arrivals:
    arrivals = Arrivals(status=200, headers=[(b"content-type", b"text/event-stream")], attempts=1)
    for number, (a, b) in enumerate(zip([0, *cuts], [*cuts, len(body)], strict=True), start=1):
        arrivals.add(float(number), body[a:b])
    arrivals.end(End.COMPLETE, float(len(cuts) + 2))
    return arrivals


def both(arrivals: Arrivals, monkeypatch: pytest.MonkeyPatch) -> tuple[RequestRecord, RequestRecord]:
    whole = decode(arrivals, ASKED)
    with monkeypatch.context() as patch:
        patch.setattr(decoding, "plain_replies", lambda *_: None)
        return whole, decode(arrivals, ASKED)


@pytest.mark.parametrize("path", BODIES, ids=lambda path: path.name)
def test_captures_cut_at_every_byte(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = body_of(path)[-3000:]
    body = body[body.index(b"data: ") :]  # whole events, at most 3000 bytes of them
    for at in range(len(body) + 1):
        whole, by_event = both(cut(body, [at]), monkeypatch)
        assert whole == by_event
    whole, by_event = both(cut(body, list(range(1, len(body)))), monkeypatch)
    assert whole == by_event


def test_vllms_streams_take_the_fast_way() -> None:
    taken = [path.name for path in BODIES if plain_replies([body_of(path)], [1.0]) is not None]
    assert len(taken) > len(BODIES) / 2


@pytest.mark.parametrize("path", BODIES[:6], ids=lambda path: path.name)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_captures_cut_at_random(path: Path, data: st.DataObject) -> None:
    body = body_of(path)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(body) - 1), max_size=12)))
    with pytest.MonkeyPatch.context() as patch:
        whole, by_event = both(cut(body, cuts), patch)
    assert whole == by_event


def shapes(chunks: Any) -> dict[str, list[bytes]]:
    """Streams with everything that an event may hold beside one piece of text."""
    call = {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "{}"}}]}
    error = b'data: {"error":{"message":"engine died","code":500}}\n\n'
    two = b'data: {"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}]}\n\n'
    ids = [
        b'data: {"choices":[{"index":0,"delta":{"content":"%s"},"token_ids":[%d]}]}\n\n' % (text, number)
        for number, text in enumerate((b"", b"x", b"", b"y", b""))
    ]
    return {
        "plain": chunks.reply(5),
        "completions": [b'data: {"choices":[{"index":0,"text":"a"}]}\n\n' * 3, chunks.usage(3, 3), chunks.done],
        "reasoning": [
            chunks.e({"reasoning": "r"}),
            chunks.e({"reasoning_content": "s"}),
            chunks.text("t"),
            chunks.done,
        ],
        "tools": [chunks.e(call), chunks.fin("tool_calls"), chunks.done],
        "continuous": [chunks.text("a", usage=USAGE), chunks.text("", usage=USAGE), chunks.fin("stop"), chunks.done],
        "error": [chunks.text("a"), error, chunks.done],
        "error alone": [error, chunks.done],
        "message": [b'data: {"message":"x"}\n\n', chunks.done],
        "two choices": [two, chunks.done],
        "ids": [*ids, chunks.done],
        "metrics": [chunks.text("a", metrics={"speculative_decoding": {"num_spec_steps": 5}}), chunks.done],
        "aborted": [chunks.text("a"), chunks.e({"content": "b"}, "abort"), chunks.done],
        "message reply": [
            b'data: {"choices":[{"message":{"content":"whole"},"finish_reason":"stop"}]}\n\n',
            chunks.done,
        ],
    }


@pytest.mark.parametrize(
    "name",
    ["plain", "completions", "reasoning", "tools", "continuous", "error", "error alone", "message", "two choices",
     "ids", "metrics", "aborted", "message reply"],
)  # fmt: skip
def test_every_kind_of_event_is_read_alike(name: str, chunks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    body = b"".join(shapes(chunks)[name])
    assert plain_replies([body], [1.0]) is not None
    for cuts in ([], list(range(1, len(body))), [len(body) // 2]):
        whole, by_event = both(cut(body, cuts), monkeypatch)
        assert whole == by_event


@pytest.mark.parametrize(
    "body",
    [
        b'data: {"choices":[{"text":"a"}]}\r\n\r\ndata: [DONE]\r\n\r\n',
        b'\xef\xbb\xbfdata: {"choices":[{"text":"a"}]}\n\ndata: [DONE]\n\n',
        b'data:{"choices":[{"text":"a"}]}\n\ndata: [DONE]\n\n',
        b': ping\n\ndata: {"choices":[{"text":"a"}]}\n\ndata: [DONE]\n\n',
        b'data: {"choices":[{"text":"a"}]}\n\n: ping\n\ndata: {"choices":[{"text":"b"}]}\n\ndata: [DONE]\n\n',
        b'event: x\ndata: {"choices":[{"text":"a"}]}\n\ndata: [DONE]\n\n',
        b'data: {"choices":[\ndata: {"text":"a"}]}\n\ndata: [DONE]\n\n',
        b'data: {"choices":[{"text":"a"}]}\n\n\ndata: [DONE]\n\n',
        b'data: {"choices":[{"text":"a"}]}\n\n',
        b'data: {"choices":[{"text":"a"}]} {}\n\ndata: [DONE]\n\n',
        b'data: {"choices":[{"text":"a"}]}\n\ndata: {bad}\n\ndata: [DONE]\n\n',
        # joined, these two would be one valid value: neither is valid alone
        b'data: {"choices":[{"text":"a"}\n\ndata: {"text":"b"}]}\n\ndata: [DONE]\n\n',
        b'data: {"choices":[{"text":"a"}]}\n\ndata: [DONE]\n\ndata: {"choices":[{"text":"b"}]}\n\ndata: [DONE]\n\n',
        b'data: {"choices":[{"text":"\xff"}]}\n\ndata: [DONE]\n\n',
        b"",
    ],
)
def test_any_doubt_goes_event_by_event(body: bytes) -> None:
    assert plain_replies([body], [1.0]) is None
