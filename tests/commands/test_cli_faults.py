"""What no command foresees: faults of the machine, a closed terminal."""

import signal
import sys

import pytest

from loadgen.cli import main
from loadgen.commands.sweep_measure import stop_signals
from loadgen.errors import ExitCode


def test_a_fault_of_the_machine_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["loadgen", "analyse", "x" * 5000])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == ExitCode.USAGE
    assert "File name too long; change that" in capsys.readouterr().err


@pytest.mark.parametrize(("handler", "stops"), [(signal.SIG_DFL, True), (signal.SIG_IGN, False)])
def test_a_closed_terminal_stops_a_run_cleanly_but_not_under_nohup(handler: signal.Handlers, stops: bool) -> None:
    before = signal.signal(signal.SIGHUP, handler)
    try:
        assert (signal.SIGHUP in stop_signals()) is stops
    finally:
        signal.signal(signal.SIGHUP, before)
