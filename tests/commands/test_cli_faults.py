"""Faults of the machine that no command foresees are still one sentence."""

import sys

import pytest

from loadgen.cli import main
from loadgen.errors import ExitCode


def test_a_fault_of_the_machine_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["loadgen", "analyse", "x" * 5000])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == ExitCode.USAGE
    assert "File name too long; change that" in capsys.readouterr().err
