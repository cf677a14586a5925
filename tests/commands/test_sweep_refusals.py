"""What cannot start is refused before a run folder is made, and a simulator is called one wherever it runs."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from loadgen.cli import app
from loadgen.errors import UsageError


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--engine", "url", "--url", "http://127.0.0.1:9"], "give one for each"),
        (["--engine", "url", "--url", "baseline=http://127.0.0.1:9"], "No URL is given for profile ngram"),
        (["--engine", "simulator", "--hardware", "h100"], "choose one of"),
        (["--engine", "simulator", "--hardware", "nothing.json"], "cannot be read as JSON"),
    ],
)
def test_no_run_folder_is_left(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    found = CliRunner().invoke(app, ["sweep", "--runs", str(tmp_path / "runs"), *arguments])
    assert isinstance(found.exception, UsageError)
    assert sentence in str(found.exception)
    assert not (tmp_path / "runs").exists()
