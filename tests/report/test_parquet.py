"""requests.parquet: a row per request, read back; and the sentence without pyarrow."""

import sys
from pathlib import Path

import pytest

from loadgen.errors import UsageError
from loadgen.load.record import Outcome, RequestRecord
from loadgen.report.parquet import COLUMNS, row_of, write_parquet
from loadgen.store.folder import RunFolder
from loadgen.store.model import CellKey, Condition
from loadgen.store.requests import pack

KEY = CellKey("ngram", Condition("code-edit", 300, 0.0), 2, 1)
GOOD = RequestRecord(
    "p/0",
    0,
    Outcome.OK,
    10.0,
    11.1,
    first_token_s=10.5,
    last_token_s=11.0,
    prompt_tokens=300,
    output_tokens=3,
    chunk_times_s=(10.5, 11.0),
    chunk_tokens=(1, 2),
)
BAD = RequestRecord("p/1", 1, Outcome.OVERLOAD, 10.0, 10.1, error="busy, \u0000 try again")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path)
    folder.append_request(KEY, GOOD, "warmup")
    folder.append_request(KEY, BAD)
    folder.close()
    return folder


def test_a_row_has_every_column_in_its_order() -> None:
    row = row_of(pack(KEY, GOOD))
    assert list(row) == list(COLUMNS)
    assert (row["ttft_s"], row["e2e_s"], row["tpot_s"], row["chunks"]) == (0.5, 1.0, 0.25, 2)


def test_without_pyarrow_a_sentence_names_the_extra(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"loadgen\[parquet\]"):
        write_parquet(folder)


@pytest.mark.parquet
def test_the_file_reads_back(folder: RunFolder) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra `parquet` is not installed")
    table = parquet.read_table(write_parquet(folder))
    assert table.schema.metadata[b"loadgen.simulated"] == b"false"
    assert table.column_names == list(COLUMNS)
    first, second = table.to_pylist()
    assert (first["phase"], first["outcome"], first["output_tokens"]) == ("warmup", "ok", 3)
    assert first["tpot_s"] == pytest.approx(0.25)
    assert (second["outcome"], second["ttft_s"], second["error"]) == ("overload", None, BAD.error)
    assert [path.name for path in folder.path.iterdir() if path.suffix == ".part"] == []


@pytest.mark.parquet
def test_a_torn_line_leaves_no_half_file(folder: RunFolder) -> None:
    pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    with (folder.path / "requests.jsonl").open("ab") as file:
        file.write(b"{}\n")
    with pytest.raises(UsageError, match="cannot be written"):
        write_parquet(folder)
    assert {path.name for path in folder.path.iterdir()} == {"requests.jsonl"}
