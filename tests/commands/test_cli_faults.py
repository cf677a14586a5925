"""What no command foresees: faults of the machine, a closed terminal."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

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


def cli(*words: str, shell: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own; `shell` closes or redirects its streams."""
    command = shlex.join([sys.executable, "-m", "loadgen", *words])
    plain = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[2]), **environment}
    return subprocess.run(
        ["/bin/sh", "-c", f"{command} {shell}"],
        env=plain,
        capture_output=True,
        text=True,
        check=False,
        errors="replace",
    )


def test_what_a_terminal_cannot_show_is_no_traceback() -> None:
    run = str(Path(__file__).parents[2] / "examples" / "h200" / "dense8b")
    done = cli("analyse", run, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="ascii")
    assert done.returncode in (ExitCode.ANSWER, ExitCode.NO_VERDICT)
    # after a 3 one line tells it in words
    assert len(done.stderr.splitlines()) == (done.returncode == ExitCode.NO_VERDICT)
    assert "Traceback" not in done.stderr
    assert done.stdout.isascii()


def test_a_closed_standard_error_keeps_the_exit_code() -> None:
    assert cli("analyse", "/nowhere", shell="2>&-").returncode == ExitCode.USAGE


@pytest.mark.parametrize("host", ["a" * 80, "a b"])
@pytest.mark.parametrize(("command", "words"), [("exporter", "choose another --host"), ("serve", "try 127.0.0.1")])
def test_a_host_that_is_none_is_one_sentence(command: str, words: str, host: str) -> None:
    done = cli(command, "--host", host, "--port", "0")
    assert done.returncode == ExitCode.USAGE
    assert len(done.stderr.splitlines()) == 1
    assert words in done.stderr
