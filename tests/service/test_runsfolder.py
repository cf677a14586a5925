"""Nothing outside the runs folder is read or written."""

from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from loadgen.service.problems import Refusal
from loadgen.service.runsfolder import RunsFolder
from loadgen.store.folder import RunFolder

MakeRun = Callable[..., RunFolder]


@pytest.mark.parametrize(
    "name", ["..", ".", "", "../secret", "/etc", "a/b", "a\\b", "x\0y", "-x", ".service.lock", "é", "x" * 200]
)
def test_names_that_are_no_runs_are_refused(runs: Path, name: str) -> None:
    with pytest.raises(Refusal):
        RunsFolder(runs).folder(name)


@pytest.mark.parametrize(
    "path",
    [
        "/runs/{run}/manifest.json",
        "/runs/{run}/lock",
        "/runs/{run}/..%2f..%2fsecret.txt",
        "/runs/..%2f..%2fsecret.txt/report.html",
        "/runs/%2e%2e/report.html",
        "/runs/{run}/servers%2fngram.log",
        "/static/..%2fapp.py",
        "/static/%2e%2e%2fguard.py",
        "/api/runs/..%2f..%2f/summary",
    ],
)
def test_paths_lead_nowhere(serve: Callable[..., httpx2.Client], make_run: MakeRun, runs: Path, path: str) -> None:
    (runs.parent / "secret.txt").write_text("secret", encoding="utf-8")
    answer = serve().get(path.format(run=make_run().run_id))
    assert answer.status_code == 404
    assert "secret" not in answer.text.replace(path, "")


def test_a_run_that_is_a_link_is_no_run(runs: Path, tmp_path: Path, make_run: MakeRun) -> None:
    make_run().path.rename(tmp_path / "elsewhere")
    (runs / "linked").symlink_to(tmp_path / "elsewhere")
    folder = RunsFolder(runs)
    assert folder.names() == []
    with pytest.raises(Refusal):
        folder.folder("linked")


@pytest.mark.parametrize("name", ["report.html", "progress.jsonl", "manifest.json", "verify"])
def test_a_run_with_a_link_in_it_is_no_run(runs: Path, tmp_path: Path, make_run: MakeRun, name: str) -> None:
    run = make_run()
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    (run.path / name).unlink(missing_ok=True)
    (run.path / name).symlink_to(tmp_path / "secret")
    folder = RunsFolder(runs)
    assert folder.names() == []
    with pytest.raises(Refusal):
        folder.page(run.run_id, "report.html")


def test_report_files_are_given_and_shut_in(serve: Callable[..., httpx2.Client], make_run: MakeRun) -> None:
    run = make_run()
    (run.path / "report.html").write_text("<script>alert(1)</script>", encoding="utf-8")
    (run.path / "cells.csv").write_text("a,b\n", encoding="utf-8")
    client = serve()
    page = client.get(f"/runs/{run.run_id}/report.html")
    assert page.text == "<script>alert(1)</script>"
    policy = page.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts")
    assert "allow-same-origin" not in policy
    assert client.get(f"/runs/{run.run_id}/cells.csv").headers["content-disposition"].startswith("attachment")
    assert client.get(f"/runs/{run.run_id}/report.md").status_code == 404
