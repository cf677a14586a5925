"""Full disks and files that something else has written into."""

import json
import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from loadgen.errors import UsageError
from loadgen.store.codec import encode
from loadgen.store.folder import RunFolder, StoredEvent, find_run, list_runs, unreadable_runs
from loadgen.store.jsonl import Appender, DamagedLineError, read
from loadgen.store.lock import FolderLock
from loadgen.store.model import Manifest


def event(text: str) -> StoredEvent:
    return StoredEvent("2026-11-29T16:20:00.000Z", "note", text)


@pytest.fixture
def limit_files() -> Iterator[Callable[[int], None]]:
    """Files of this process may not grow beyond so many bytes: the kernel's short writes and errors of a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("room", [0, 1, 40])
def test_a_full_disk_leaves_whole_lines_and_one_sentence(
    tmp_path: Path, limit_files: Callable[[int], None], room: int
) -> None:
    path = tmp_path / "events.jsonl"
    file = Appender(path)
    file.append(event("fits"))
    whole = path.read_bytes()
    limit_files(len(whole) + room)
    with pytest.raises(UsageError, match=r"events\.jsonl cannot be written .*free space"):
        file.append(event("fits no more"), event("nor this"))
    assert path.read_bytes() == whole
    limit_files(1 << 30)
    file.append(event("fits again"))
    file.close()
    assert [e.text for e in read(path, StoredEvent)] == ["fits", "fits again"]


def test_a_damaged_line_is_one_sentence_with_file_line_and_cure(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_bytes(encode(event("whole")) + b"\ngarbage\n" + encode(event("last")) + b"\n")
    with pytest.raises(DamagedLineError, match=r"events\.jsonl:2 cannot be read .*; remove that line\.") as caught:
        tuple(RunFolder(tmp_path).events())
    assert isinstance(caught.value, UsageError)


@pytest.fixture
def two_runs(tmp_path: Path) -> Path:
    for day in ("01", "02"):
        folder = tmp_path / f"2026-11-{day}T00-00-00Z-ngram"
        folder.mkdir()
        manifest = Manifest(
            run_id=folder.name,
            created_at=f"2026-11-{day}T00:00:00.000Z",
            loadgen_version="0",
            argv=("sweep",),
            engine="simulator",
            engine_reason="",
            simulated=True,
            profiles=("baseline", "ngram"),
            against="baseline",
            methods={},
            num_speculative_tokens={},
            conditions=(),
            levels=(1,),
            repeats=1,
            sessions=1,
            seed=1,
            quick=False,
            order="together",
            sampling={},
            hardware={},
        )
        RunFolder(folder).write_manifest(manifest)
    return tmp_path


def test_one_damaged_manifest_hides_no_other_run(two_runs: Path) -> None:
    first, second = list_runs(two_runs)
    (first.path / "manifest.json").write_text("")
    assert [run.run_id for run in list_runs(two_runs)] == [second.run_id]
    assert list(unreadable_runs(two_runs)) == [first.run_id]
    assert find_run("latest", two_runs).run_id == second.run_id


def test_latest_is_never_silently_an_older_run(two_runs: Path) -> None:
    newest = list_runs(two_runs)[-1].path / "manifest.json"
    newest.write_text(json.dumps({"schema": 99}))
    with pytest.raises(UsageError, match="repair or remove it"):
        find_run("latest", two_runs)


def test_a_folder_that_cannot_be_locked_or_written_is_one_sentence(tmp_path: Path) -> None:
    # A folder in the file's place fails for root too, unlike a mode without write permission.
    (tmp_path / "lock").mkdir()
    (tmp_path / "events.jsonl").mkdir()
    with pytest.raises(UsageError, match="cannot be written"), FolderLock(tmp_path):
        pass
    with pytest.raises(UsageError, match="cannot be written"):
        Appender(tmp_path / "events.jsonl")
