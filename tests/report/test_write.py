"""All reports of a run, each whole or not there."""

import json
from pathlib import Path

import pytest

from loadgen.analysis.model import Findings
from loadgen.errors import UsageError
from loadgen.report.write import write_reports
from loadgen.store.folder import write_whole
from loadgen.store.model import CellResult, Manifest, ServerFacts


def test_the_files_and_nothing_else(
    tmp_path: Path,
    findings: Findings,
    manifest: Manifest,
    cells: tuple[CellResult, ...],
    servers: tuple[ServerFacts, ...],
) -> None:
    written = write_reports(tmp_path, findings, manifest, cells, servers)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(written)
    assert sorted(written) == [
        "cells.csv", "report.html", "report.md", "speedup-1.svg", "speedup-2.svg", "summary.json",
    ]  # fmt: skip
    assert "](speedup-2.svg)" in written["report.md"].read_text()
    assert json.loads(written["summary.json"].read_text())["run_id"] == findings.run_id
    write_reports(tmp_path, findings, manifest, cells, servers)
    assert len(list(tmp_path.iterdir())) == 6


def test_hostile_text_is_written_as_utf8(
    tmp_path: Path, hostile_findings: Findings, manifest: Manifest, cells: tuple[CellResult, ...]
) -> None:
    for path in write_reports(tmp_path, hostile_findings, manifest, cells, ()).values():
        text = path.read_text(encoding="utf-8")
        assert text
        # what would end a script or begin a tag does so nowhere in what a browser opens
        assert path.suffix not in (".html", ".svg") or "x</script><img" not in text


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be written .*; free some space, or choose another folder\."):
        write_whole(tmp_path / "missing" / "x.txt", b"x")


def test_what_stood_there_stays_if_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.md"
    write_whole(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(UsageError, match="No space left"):
        write_whole(path, b"new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
