import json
from pathlib import Path

import pytest

from loadgen.store.codec import encode
from loadgen.store.folder import StoredEvent
from loadgen.store.jsonl import Appender, read


def event(text: str) -> StoredEvent:
    return StoredEvent("2026-11-29T16:20:00.000Z", "note", text)


def test_facts_come_back_in_order(tmp_path: Path) -> None:
    file = Appender(tmp_path / "events.jsonl")
    file.append(event("one"), event("two\u2028with a separator"))
    file.append(event("three"))
    file.close()
    texts = [e.text for e in read(tmp_path / "events.jsonl", StoredEvent)]
    assert texts == ["one", "two\u2028with a separator", "three"]


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_torn_last_line_is_no_record_and_spoils_no_other(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "events.jsonl"
    whole = encode(event("whole")) + b"\n"
    path.write_bytes(whole + encode(event("torn"))[:cut])
    assert [e.text for e in read(path, StoredEvent)] == ["whole"]
    file = Appender(path)
    file.append(event("after"))
    file.close()
    assert [e.text for e in read(path, StoredEvent)] == ["whole", "after"]


def test_a_long_torn_line_is_cut_back_to_the_last_line_end(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(encode(event("whole")) + b"\n" + b"x" * 300_000)
    Appender(path).close()
    assert path.read_bytes() == encode(event("whole")) + b"\n"


def test_a_file_of_one_torn_line_is_emptied(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"at": "2')
    Appender(path).close()
    assert path.read_bytes() == b""


def test_a_bad_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(encode(event("a")) + b"\nnonsense\n" + encode(event("b")) + b"\n")
    with pytest.raises(ValueError, match=r"events\.jsonl:2"):
        list(read(path, StoredEvent))


def test_non_finite_numbers_become_null() -> None:
    assert json.loads(encode({"a": float("nan"), "b": float("inf")})) == {"a": None, "b": None}
