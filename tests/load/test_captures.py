"""Every captured response, cut anywhere, gives the same record."""

import base64
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.load.arrivals import Arrivals, End
from loadgen.load.decode import Asked, decode
from loadgen.load.record import Outcome, RequestRecord
from loadgen.load.replay import load_stream

CAPTURES = Path(__file__).parent.parent / "data" / "captures"
HTTP = sorted(CAPTURES.rglob("*.http"))
SSE = sorted(CAPTURES.rglob("*.sse"))
ASKED = Asked("p", keep_text=True)


def timeless(record: RequestRecord) -> RequestRecord:
    """The record without what depends on arrival."""
    return replace(
        record,
        start_s=0.0,
        end_s=0.0,
        first_token_s=None,
        last_token_s=None,
        first_answer_s=None,
        chunk_times_s=(0.0,) * len(record.chunk_times_s),
        warnings=(),
    )


def from_wire(parts: list[bytes]) -> RequestRecord:
    return timeless(decode(load_stream(list(enumerate(map(bytes, parts), start=1)), http=True), ASKED))


def cut_at(data: bytes, cuts: list[int]) -> list[bytes]:
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True) if b > a]


@pytest.mark.parametrize("path", HTTP, ids=lambda path: path.name)
def test_http_captures_byte_by_byte_and_cut_everywhere(path: Path) -> None:
    wire = path.read_bytes()
    whole = from_wire([wire])
    assert whole.outcome is Outcome.OK
    assert whole.token_source == "server"
    assert whole.output_tokens > 10
    assert from_wire([wire[i : i + 1] for i in range(len(wire))]) == whole
    for cut in range(1, len(wire), 401):
        assert from_wire(cut_at(wire, [cut])) == whole


@pytest.mark.parametrize("path", HTTP[:6], ids=lambda path: path.name)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_http_captures_cut_at_random(path: Path, data: st.DataObject) -> None:
    wire = path.read_bytes()
    cuts = sorted(data.draw(st.lists(st.integers(1, len(wire) - 1), max_size=30)))
    assert from_wire(cut_at(wire, cuts)) == from_wire([wire])


@pytest.mark.parametrize("path", SSE, ids=lambda path: path.name)
def test_sse_captures_cut_at_every_byte(path: Path) -> None:
    body = path.read_bytes()
    whole = timeless(decode(load_stream([(1.0, body)], http=False), ASKED))
    assert whole.outcome is Outcome.OK
    bytewise = [(float(i), body[i : i + 1]) for i in range(len(body))]
    assert timeless(decode(load_stream(bytewise, http=False), ASKED)) == whole


@pytest.mark.parametrize("path", sorted(CAPTURES.rglob("*.reads.jsonl")), ids=lambda path: path.name)
def test_reads_keep_their_times_and_agree_with_the_whole_response(path: Path) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    reads = [(line["t"], base64.b64decode(line["b64"])) for line in lines[1:]]
    arrivals = load_stream(reads, http=True)
    record = decode(arrivals, ASKED)
    assert arrivals.ended is End.COMPLETE
    assert record.outcome is Outcome.OK
    assert record.output_tokens == lines[0]["request"]["max_tokens"]
    assert set(record.chunk_times_s) <= {t for t, _ in reads}
    assert list(record.chunk_times_s) == sorted(record.chunk_times_s)
    name = path.name.replace(".reads.jsonl", ".http")
    assert timeless(record) == from_wire([path.with_name(name).read_bytes()])


@pytest.mark.parametrize("path", sorted(CAPTURES.rglob("*-cont-usage.http")), ids=lambda path: path.name)
def test_c11_continuous_usage_of_a_real_server_adds_up(path: Path) -> None:
    record = from_wire([path.read_bytes()])
    assert record.chunk_tokens is not None
    assert sum(record.chunk_tokens) == record.output_tokens
    assert min(record.chunk_tokens) >= 1


@pytest.mark.parametrize("path", sorted(CAPTURES.rglob("*-token-ids.http")), ids=lambda path: path.name)
def test_token_ids_of_a_real_server_add_up(path: Path) -> None:
    record = from_wire([path.read_bytes()])
    assert record.token_ids is not None
    assert record.chunk_tokens is not None
    assert len(record.token_ids) == sum(record.chunk_tokens) == record.output_tokens


@pytest.mark.parametrize("path", [*HTTP[:3], *SSE], ids=lambda path: path.name)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_damaged_bytes_never_raise(path: Path, data: st.DataObject) -> None:
    wire = bytearray(path.read_bytes()[:4000])
    for _ in range(data.draw(st.integers(1, 6))):
        wire[data.draw(st.integers(0, len(wire) - 1))] = data.draw(st.integers(0, 255))
    arrivals = load_stream([(1.0, bytes(wire))], http=path.suffix == ".http")
    assert decode(arrivals, ASKED).outcome in Outcome


@settings(max_examples=60, deadline=None)
@given(body=st.binary(max_size=200), coding=st.sampled_from([b"gzip", b"deflate", b"br", b"identity"]))
def test_any_body_under_any_coding_gives_a_record(body: bytes, coding: bytes) -> None:
    arrivals = Arrivals(status=200, headers=[(b"Content-Encoding", coding)])
    arrivals.add(1.0, body)
    arrivals.end(End.COMPLETE, 1.0)
    assert decode(arrivals, ASKED).outcome is not Outcome.OK or body
