"""`--resume` goes on with what was asked for: an option that it cannot heed is refused, not ignored."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from loadgen.cli import app
from loadgen.errors import UsageError


@pytest.mark.parametrize(
    "words",
    [
        ("answer", "--seed", "1"),
        ("answer", "--objective", "tpot"),
        ("answer", "--slo", "ttft_p99=500ms"),
        ("answer", "--quick"),
        ("lossless", "--seed", "7"),
        ("lossless", "--url", "http://127.0.0.1:1"),
        ("lossless", "--margin", "0.2"),
    ],
)
def test_an_option_beside_resume_is_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    option = words[1]
    with pytest.raises(UsageError, match=f"takes no {option}; leave it out"):
        CliRunner().invoke(app, [*words, "--resume", "x", "--runs", str(tmp_path)], catch_exceptions=False)


@pytest.mark.parametrize("words", [("answer", "--json"), ("lossless", "--json"), ("lossless", "--seeds", "off")])
def test_what_a_resume_takes_is_no_fault(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_COMMAND", "vllm serve")
    with pytest.raises(UsageError, match=r"is no run|no run"):
        CliRunner().invoke(app, [*words, "--resume", "x", "--runs", str(tmp_path)], catch_exceptions=False)
