"""The command that goes on with a run that was stopped."""

from pathlib import Path

import pytest

from loadgen.commands.resume import resume_words
from loadgen.store.folder import RunFolder


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("runs/2026-ngram", "make sweep ARGS='--resume 2026-ngram'"),
        ("/data/my runs/2026-ngram", "loadgen sweep --resume '/data/my runs/2026-ngram'"),
    ],
)
def test_a_run_outside_the_usual_folder_is_resumed_by_its_path(path: str, words: str) -> None:
    assert resume_words(RunFolder(Path(path))) == words
