"""A level that this machine cannot hold is refused before any work starts, with the way out."""

import resource
from pathlib import Path

import pytest

from loadgen.commands import load_run, sweep_setup
from loadgen.commands.machine_limits import Limits, advice, require_carried, this_machine
from loadgen.errors import UsageError

HERE = Limits(files=1024, ports=28_232, cores=2)


@pytest.mark.parametrize(
    ("level", "workers", "limits", "words"),
    [
        (4096, 1, HERE, r"--levels 4096 needs 4224 open files .* 1024 are allowed here .* --workers"),
        (30_000, 64, HERE, r"needs as many local ports, and this machine has 28232"),
    ],
)
def test_the_limit_and_the_way_out_are_named(level: int, workers: int, limits: Limits, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        require_carried(level, workers, "--levels", limits)


def test_what_fits_raises_our_own_limit_of_open_files() -> None:
    raised: list[int] = []
    require_carried(4096, 8, "--levels", HERE, raised.append)
    assert raised == [512 + 128]


def test_the_soft_limit_follows_the_level() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        require_carried(400, 1, "--concurrency")
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 528
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_more_load_processes_than_cores_are_said() -> None:
    assert advice(2, HERE) == ()
    assert "share 2 cores" in advice(3, HERE)[0]


def test_this_machine_has_limits() -> None:
    found = this_machine()
    assert min(found.files, found.ports, found.cores) >= 1


def test_the_commands_ask_for_it() -> None:
    for module in (sweep_setup, load_run):
        assert "require_carried(" in Path(str(module.__file__)).read_text(encoding="utf-8")
