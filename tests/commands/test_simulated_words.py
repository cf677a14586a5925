"""Every output that shows simulated figures says so, and an import only what an import can know."""

import csv
import json
import shutil
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loadgen.cli import app
from loadgen.commands.verify_setup import VerifyRequest, prepare
from loadgen.errors import UsageError
from loadgen.store.folder import RunFolder, find_run

ROOT = Path(__file__).resolve().parents[2]
FOREIGN = ROOT / "tests" / "data" / "foreign"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated run and its twin."""
    sys.path.insert(0, str(ROOT))
    try:
        from tools.make_large_run import Size, write_large_run
    finally:
        sys.path.remove(str(ROOT))
    path: Path = tmp_path_factory.mktemp("runs")
    write_large_run(path / "one", Size(levels=(1, 4, 16), profiles=("ngram",), repeats=3, chunks=20_000))
    shutil.copytree(path / "one", path / "two")
    folder = RunFolder(path / "two")
    twin = json.loads((path / "two" / "manifest.json").read_text(encoding="utf-8")) | {"run_id": "two"}
    (path / "two" / "manifest.json").write_text(json.dumps(twin), encoding="utf-8")
    assert folder.manifest().simulated
    return path


def said(runs: Path, *words: str) -> str:
    done = CliRunner().invoke(app, [*words, "--runs", str(runs)])
    assert done.exit_code in (0, 1, 3), done.output
    return done.output


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "one", "two"),
        ("analyse", "one"),
        ("plan", "one", "--slo", "ttft_p90=500ms"),
        ("runs",),
    ],
    ids=lambda words: words[0],
)
def test_the_terminal_says_simulated(runs: Path, words: tuple[str, ...]) -> None:
    assert "SIMULATED" in said(runs, *words)


def test_the_json_of_a_comparison_says_it_of_either_run(runs: Path) -> None:
    assert json.loads(said(runs, "compare", "one", "two", "--json"))["simulated"] == {"before": True, "after": True}


def test_replayed_samples_and_csv_rows_say_it(runs: Path, tmp_path: Path) -> None:
    assert said(runs, "replay", "one", "--output", str(tmp_path / "om.txt")).startswith("SIMULATED: ")
    info = [line for line in (tmp_path / "om.txt").read_text().splitlines() if line.startswith("loadgen_run_info{")]
    assert info
    assert all('simulated="true"' in line for line in info)
    said(runs, "report", "one")
    with (runs / "one" / "cells.csv").open(encoding="utf-8", newline="") as file:
        assert {row["simulated"] for row in csv.DictReader(file)} == {"True"}
    assert "SIMULATED" in (runs / "one" / "report.html").read_text(encoding="utf-8")
    assert "SIMULATED" in (runs / "one" / "report.md").read_text(encoding="utf-8")


def imported(runs: Path, *more: str) -> str:
    files = [
        word
        for level in (1, 4, 16)
        for side in ("baseline", "ngram")
        for word in (f"--{'profile' if side == 'ngram' else side}", str(FOREIGN / f"vllm-{side}-c{level}.json"))
    ]
    return said(runs, "import", "--method", "ngram", "--k", "4", *files, *more)


def test_an_import_says_simulated_when_it_is_told_so(tmp_path: Path) -> None:
    assert "SIMULATED" not in imported(tmp_path)
    assert "SIMULATED" in imported(tmp_path, "--simulated")


def test_an_import_gets_no_cure_that_it_cannot_take(tmp_path: Path) -> None:
    words = " ".join(imported(tmp_path).split())
    assert "--disable-log-stats" not in words
    assert "loadgen sweep --url" in words


def test_what_needs_servers_refuses_an_import_with_a_way_out(tmp_path: Path) -> None:
    imported(tmp_path)
    with pytest.raises(UsageError, match=r"not made by a sweep.*loadgen sweep --url"):
        prepare(find_run("latest", tmp_path), VerifyRequest(), as_json=True)
