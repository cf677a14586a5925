"""The SSE decoder by the WHATWG rules: any cutting gives the same events."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.load.sse import Event, SseDecoder

CAPTURES = Path(__file__).parent.parent / "data" / "captures"


def events_of(blocks: list[bytes]) -> list[tuple[bytes, bytes]]:
    decoder = SseDecoder()
    return [(event.name, event.data) for i, block in enumerate(blocks) for event in decoder.feed(block, float(i))]


def one_by_one(body: bytes) -> list[bytes]:
    return [body[i : i + 1] for i in range(len(body))]


def test_c01_multibyte_character_cut() -> None:
    body = 'data: {"t":"日本"}\n\n'.encode()
    cut = body.index(b"\xe6") + 1
    assert events_of([body[:cut], body[cut:]]) == [(b"", '{"t":"日本"}'.encode())]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_c03_all_three_line_ends_are_one_end(end: bytes) -> None:
    body = end.join([b"data: a", b"data: b", b"", b"data: c", b"", b""])
    expected = [(b"", b"a\nb"), (b"", b"c")]
    assert events_of([body]) == expected
    assert events_of(one_by_one(body)) == expected
    for cut in range(len(body) + 1):
        assert events_of([body[:cut], body[cut:]]) == expected


def test_c04_at_most_one_space_is_stripped() -> None:
    assert events_of([b"data:x\n\ndata: x\n\ndata:  x\n\n"]) == [(b"", b"x"), (b"", b"x"), (b"", b" x")]


def test_c05_comments_and_empty_events_give_nothing() -> None:
    assert events_of([b": keep-alive\n\n", b":\n\n", b": x\ndata: A\n\n"]) == [(b"", b"A")]


@pytest.mark.parametrize("inside", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_c06_unicode_line_separators_end_no_line(inside: str) -> None:
    data = f"a{inside}b".encode()
    assert events_of([b"data: " + data + b"\n\n"]) == [(b"", data)]


def test_c07_fields_several_data_lines_and_bom() -> None:
    body = b'\xef\xbb\xbfevent: chunk\nid: 7\nretry: 10\nnonsense\ndata: {"a":\ndata: 1}\n\ndata\n\n'
    expected = [(b"chunk", b'{"a":\n1}'), (b"", b"")]
    assert events_of([body]) == expected
    assert events_of(one_by_one(body)) == expected


def test_event_name_does_not_outlive_its_event() -> None:
    assert events_of([b"event: error\n\ndata: x\n\n"]) == [(b"", b"x")]


def test_time_is_that_of_the_block_with_the_blank_line() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: a\n", 1.0) == []
    assert decoder.unfinished
    assert decoder.feed(b"\ndata: b\n\n", 2.0) == [Event(b"", b"a", 2.0), Event(b"", b"b", 2.0)]
    assert not decoder.unfinished


@pytest.mark.parametrize("path", sorted(CAPTURES.rglob("*.sse")), ids=lambda path: path.name)
def test_captured_bodies_cut_at_every_byte(path: Path) -> None:
    body = path.read_bytes()
    whole = events_of([body])
    assert len(whole) > 10
    assert whole[-1][1] == b"[DONE]"
    assert events_of(one_by_one(body)) == whole
    for cut in range(0, len(body), 7):
        assert events_of([body[:cut], body[cut:]]) == whole


LINES = st.lists(
    st.sampled_from([b"data: x", b"data:", b"data:  y", b": c", b"", b"event: error", b"id: 1", b"\xef\xbb\xbf", b"d"]),
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(lines=LINES, ends=st.lists(st.sampled_from([b"\n", b"\r", b"\r\n"]), min_size=12, max_size=12), data=st.data())
def test_any_cutting_gives_the_same_events(lines: list[bytes], ends: list[bytes], data: st.DataObject) -> None:
    body = b"".join(line + end for line, end in zip(lines, ends, strict=False))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=8)))
    blocks = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert events_of(blocks) == events_of([body]) == events_of(one_by_one(body))
