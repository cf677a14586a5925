import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from loadgen.errors import UsageError
from loadgen.load.record import Outcome, RequestRecord
from loadgen.metrics.model import HistogramDelta
from loadgen.store.codec import convert, encode
from loadgen.store.folder import RunFolder, create_run, find_run, list_runs
from loadgen.store.lock import FolderLock
from loadgen.store.model import CellKey, CellResult, Condition, Manifest
from loadgen.store.requests import MAX_CHUNKS, StoredRequest, pack, unpack

RECORD = RequestRecord(
    prompt_id="chat/60/L1/r0/measure/0",
    worker=3,
    outcome=Outcome.OK,
    start_s=1000.0,
    end_s=1001.5,
    first_token_s=1000.25,
    last_token_s=1001.25,
    prompt_tokens=60,
    output_tokens=10,
    chunk_times_s=(1000.25, 1000.5, 1000.5, 1001.25),
    chunk_tokens=(1, 4, 4, 1),
    finish_reason="stop",
    http_status=200,
    error="naïve \u2028 text",
)
MANIFEST = Manifest(
    run_id="r",
    created_at="2026-11-29T16:20:00.000Z",
    loadgen_version="0",
    argv=("sweep",),
    engine="simulator",
    engine_reason="",
    simulated=True,
    profiles=("baseline", "ngram"),
    against="baseline",
    methods={"baseline": "none", "ngram": "ngram"},
    num_speculative_tokens={"ngram": 4},
    conditions=(Condition("chat", 60, 0.0),),
    levels=(1, 2),
    repeats=3,
    sessions=1,
    seed=1,
    quick=False,
    order="together",
    sampling={},
    hardware={},
)


def test_a_cell_comes_back_and_a_second_one_of_its_key_does_not_count(
    tmp_path: Path, make_cell: Callable[..., CellResult]
) -> None:
    folder = RunFolder(tmp_path)
    cell: CellResult = make_cell()
    folder.append_cell(cell)
    folder.append_cell(replace(cell, output_tokens_per_s=1.0))
    folder.append_cell(make_cell(level=2))
    folder.close()
    found = folder.cells()
    assert [c.key.level for c in found] == [1, 2]
    assert found[0].output_tokens_per_s == 100.0
    window = found[0].window
    assert window is not None
    # The +inf bucket equals the count, and JSON has no infinity.
    assert window.inter_token_latency == HistogramDelta(4.0, 0.4, ((0.1, 3.0),))


def test_records_keep_their_chunk_times_to_ten_microseconds() -> None:
    key = make_key()
    back = unpack(pack(key, RECORD))
    assert back == RECORD
    times = tuple(1000.0 + i * 0.0123456789 for i in range(200))
    record = replace(RECORD, chunk_times_s=times, chunk_tokens=None)
    for was, now in zip(times, unpack(pack(key, record)).chunk_times_s, strict=True):
        assert abs(was - now) <= 5.1e-6


def test_very_long_records_keep_half_second_bins() -> None:
    times = tuple(1000.0 + i * 0.001 for i in range(MAX_CHUNKS + 1))
    stored = pack(make_key(), replace(RECORD, chunk_times_s=times, chunk_tokens=None))
    assert sum(stored.chunk_bins) == MAX_CHUNKS + 1
    assert stored.chunk_bins[0] in (500, 501)
    assert not stored.chunk_deltas


def test_requests_are_read_by_cell(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    key, other = make_key(), replace(make_key(), level=2)
    folder.append_request(key, RECORD)
    folder.append_request(other, RECORD, "warmup")
    folder.close()
    assert len(list(folder.requests())) == 2
    (only,) = folder.requests(other)
    assert isinstance(only, StoredRequest)
    assert only.phase == "warmup"


def test_manifest_comes_back(tmp_path: Path) -> None:
    RunFolder(tmp_path).write_manifest(MANIFEST)
    assert RunFolder(tmp_path).manifest() == MANIFEST


def test_latest_is_the_newest_by_its_manifest(tmp_path: Path) -> None:
    for stamp in ("2026-11-29T10:00:00.000Z", "2026-11-29T12:00:00.000Z", "2026-11-29T11:00:00.000Z"):
        run = create_run("ngram", tmp_path)
        run.write_manifest(replace(MANIFEST, created_at=stamp))
    assert len(list_runs(tmp_path)) == 3
    assert find_run("latest", tmp_path).manifest().created_at == "2026-11-29T12:00:00.000Z"


@pytest.mark.parametrize("name", ["latest", "nothing"])
def test_a_run_that_is_not_there_is_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        find_run(name, tmp_path)


def test_a_label_cannot_leave_the_runs_folder(tmp_path: Path) -> None:
    run = create_run("../../etc/passwd", tmp_path / "runs")
    assert run.path.parent == tmp_path / "runs"


def test_a_manifest_of_another_form_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"schema": 99}')
    with pytest.raises(UsageError, match="another version"):
        RunFolder(tmp_path).manifest()


def test_one_writer_per_folder_and_the_lock_falls_with_its_process(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from loadgen.store.lock import FolderLock\n"
        "with FolderLock(Path(sys.argv[1])):\n    print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(UsageError, match=f"process {holder.pid}"), FolderLock(tmp_path):
            pass
    finally:
        holder.kill()
        holder.communicate()
    with FolderLock(tmp_path):
        pass


def make_key() -> CellKey:
    return CellKey("ngram", Condition("chat", 60, 0.0), 1, 0)


def test_convert_says_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="not a Condition"):
        convert({"workload": 3}, Condition)


def test_a_manifest_of_a_later_schema_is_one_sentence(tmp_path: Path) -> None:
    manifest = Manifest(
        run_id="x",
        created_at="2026-11-29T16:20:00.000Z",
        loadgen_version="9.0.0",
        argv=(),
        engine="process",
        engine_reason="",
        simulated=False,
        profiles=("baseline",),
        against="baseline",
        methods={},
        num_speculative_tokens={},
        conditions=(),
        levels=(1,),
        repeats=1,
        sessions=1,
        seed=1,
        quick=False,
        order="blocks",
        sampling={},
        hardware={},
        schema=2,
    )
    (tmp_path / "manifest.json").write_bytes(encode(manifest))
    with pytest.raises(UsageError, match=r"is of schema 2 and this loadgen reads schema 1: .*9\.0\.0"):
        RunFolder(tmp_path).manifest()


@pytest.mark.parametrize("level", [0, -4])
def test_a_cell_at_no_load_is_one_sentence(tmp_path: Path, make_cell: Callable[..., CellResult], level: int) -> None:
    run = RunFolder(tmp_path)
    for at in (1, level):
        run.append_cell(make_cell(level=at))
    run.close()
    with pytest.raises(UsageError, match=rf"cells\.jsonl:2 has a cell at {level} concurrent"):
        RunFolder(tmp_path).cells()
