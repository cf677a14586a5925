"""A run that is resumed with more levels or repeats: only what is new is measured, and what differs is refused."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from loadgen.analysis.model import BreakEvenStatus, Findings
from loadgen.cli import app
from loadgen.commands.conclude import find_findings
from loadgen.commands.extend import NOTHING, looks_note, most_repeats, next_command
from loadgen.commands.sweep_run import resume_sweep
from loadgen.errors import UsageError
from loadgen.store.folder import RunFolder

SWEEP = ["sweep", "--workload", "code-edit", "--levels", "1,2", "--repeats", "1", "--window", "0.2"]


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the run is that each test gets a copy of."""
    return tmp_path_factory.mktemp("swept")


@pytest.fixture
def run(in_process: Any, tmp_path: Path, swept: Path) -> RunFolder:
    if not list(swept.glob("*/manifest.json")):
        found = CliRunner().invoke(app, [*SWEEP, "--max-tokens", "16", "--runs", str(swept)])
        assert found.exit_code in (0, 3), found.output
    shutil.copytree(swept, tmp_path, symlinks=True, dirs_exist_ok=True)
    (path,) = (path.parent for path in tmp_path.glob("*/manifest.json"))
    in_process.started.clear()
    return RunFolder(path)


def places(folder: RunFolder) -> list[tuple[str, int, int]]:
    return [(cell.key.profile, cell.key.level, cell.key.repeat) for cell in folder.cells()]


def resumed(folder: RunFolder, *more: str) -> Any:
    return CliRunner().invoke(app, ["sweep", "--resume", str(folder.path), *more])


def test_named_levels_get_the_repeats_and_nothing_is_measured_twice(run: RunFolder, in_process: Any) -> None:
    before, lines = places(run), (run.path / "cells.jsonl").read_text()
    found = resumed(run, "--repeats", "2", "--levels", "2,4")
    assert found.exit_code in (0, 3), found.output

    both = ("baseline", "ngram")
    new = {(name, level, repeat) for name in both for level, repeat in ((2, 1), (4, 0), (4, 1))}
    assert (run.path / "cells.jsonl").read_text().startswith(lines)
    assert places(run)[: len(before)] == before
    assert sorted(places(run)[len(before) :]) == sorted(new)
    manifest = run.manifest()
    assert (manifest.levels, manifest.repeats, most_repeats(manifest)) == ((1, 2, 4), 1, 2)
    (event,) = [event for event in run.events() if event.kind == "extended"]
    assert event.text == "added to the plan: 2 repeats in all at 2, 4"
    # A second look at the data shares the 5 %, and says so.
    assert manifest.settings["looks"] == 2
    (note,) = looks_note(manifest)
    assert "at most 7.5%" in note
    assert note in json.loads((run.path / "summary.json").read_text())["notes"]

    # The same command again has nothing left to do, and is no further look.
    in_process.started.clear()
    again = resumed(run, "--repeats", "2", "--levels", "2,4")
    assert again.exit_code in (0, 3), again.output
    assert in_process.started == []
    assert run.manifest().settings["looks"] == 2


def test_without_levels_all_of_them_get_the_repeats(run: RunFolder) -> None:
    assert resumed(run, "--repeats", "2").exit_code in (0, 3)
    assert sorted(places(run)) == sorted(
        (n, level, r) for n in ("baseline", "ngram") for level in (1, 2) for r in (0, 1)
    )


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--workload", "chat"], "--workload cannot be changed by --resume"),
        (["--window", "3"], "--window cannot be changed by --resume"),
        (["--hardware", "h100-8b-bf16", "--levels", "8"], "--hardware cannot be changed by --resume"),
        (["--seed", "2"], "--seed cannot be changed by --resume"),
        (["--repeats", "0"], "--repeats is 0"),
        (["--levels", "0"], "--levels has 0"),
    ],
)
def test_anything_else_is_refused_in_one_sentence(run: RunFolder, more: list[str], sentence: str) -> None:
    whole = (run.path / "manifest.json").read_bytes()
    found = resumed(run, *more)
    assert isinstance(found.exception, UsageError)
    assert sentence in str(found.exception)
    assert (run.path / "manifest.json").read_bytes() == whole


def test_fewer_repeats_than_stand_are_refused(run: RunFolder) -> None:
    assert resumed(run, "--repeats", "2").exit_code in (0, 3)
    found = resumed(run, "--repeats", "1")
    assert "2 stand in the plan already" in str(found.exception)


def test_what_the_run_was_begun_with_may_stand_there(run: RunFolder, in_process: Any) -> None:
    assert resumed(run, "--profile", "ngram", "--window", "0.2").exit_code in (0, 3)
    assert in_process.started == []
    assert resume_sweep(str(run.path), run.path.parent, as_json=True, asked=NOTHING) in (0, 3)


def test_a_refined_run_keeps_its_planned_looks(run: RunFolder) -> None:
    manifest = run.manifest()
    run.write_manifest(replace(manifest, settings=manifest.settings | {"looks": 8}))
    found = resumed(run, "--levels", "8")
    assert "chose its levels and repeats itself" in str(found.exception)


def test_the_advice_is_a_command_that_can_be_run(run: RunFolder) -> None:
    findings = find_findings(run)
    condition = findings.conditions[0]
    profile = condition.profiles[0]

    def with_verdict(status: BreakEvenStatus, wanted: tuple[tuple[int, int], ...]) -> Findings:
        found = replace(
            profile.break_even["output_tokens_per_s"], status=status, wanted=wanted, tested_levels=(1, 2), crossings=()
        )
        told = replace(profile, break_even={"output_tokens_per_s": found})
        return replace(findings, conditions=(replace(condition, profiles=(told,)),), interrupted=False)

    told = with_verdict(BreakEvenStatus.INCONCLUSIVE, ((2, 3), (4, 0)))
    command = next_command(run, told)
    # Where it pays at every level, the next one shows where it turns.
    beyond = next_command(run, with_verdict(BreakEvenStatus.PAYS_THROUGHOUT, ()))
    assert beyond.startswith(f"loadgen sweep --resume {run.path} --repeats 1 --levels 4 (about ")
    assert next_command(run, with_verdict(BreakEvenStatus.NEVER_PAYS, ())) == ""
    assert command.startswith(f"loadgen sweep --resume {run.path} --repeats 4 --levels 2,4 (about ")
    assert next_command(run, replace(told, interrupted=True)) == ""
