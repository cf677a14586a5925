"""Fixtures: an engine whose servers are small real child processes, and eyes for processes."""

import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from loadgen.engines.base import EngineEvent, StartRequest
from loadgen.engines.child import Graces
from loadgen.engines.managed import Launch, ManagedEngine
from loadgen.profiles.loader import parse_profile

FAKE = Path(__file__).with_name("fake_server.py")
WAIT_S = 20.0


class FakeEngine(ManagedEngine):
    """Starts tests/engines/fake_server.py."""

    name = "fake"
    simulated = False
    can_run_together = True

    async def prepare(self, request: StartRequest, port: int) -> Launch:
        command = (sys.executable, str(FAKE), "--port", str(port), *request.extra_args)
        return Launch(command, request.environment)


@pytest.fixture
def fake_server() -> Path:
    return FAKE


@pytest.fixture
async def engine() -> AsyncIterator[FakeEngine]:
    made = FakeEngine(graces=Graces(sigint_s=0.2, sigterm_s=0.2, sigkill_s=5.0))
    yield made
    await made.close()


@pytest.fixture
def events() -> list[EngineEvent]:
    return []


@pytest.fixture
def pid_file(tmp_path: Path) -> Path:
    return tmp_path / "pids"


@pytest.fixture
def request_for(tmp_path: Path) -> Callable[..., StartRequest]:
    """A start request whose server gets these arguments."""

    def make(*arguments: str, name: str = "baseline", text: str = "{}", timeout_s: float = WAIT_S) -> StartRequest:
        config = tmp_path / f"{name}.yaml"
        config.write_text(text, encoding="utf-8")
        return StartRequest(
            profile=parse_profile(text, name=name, label=str(config)),
            config_path=config,
            log_path=tmp_path / "servers" / f"{name}.log",
            extra_args=arguments,
            environment={"FAKE_SETTING": "as given"},
            start_timeout_s=timeout_s,
        )

    return make


@pytest.fixture
def is_gone() -> Callable[[int], bool]:
    def check(pid: int) -> bool:
        """True if the process does not run any more; a zombie that nobody reaped counts as gone."""
        with suppress(OSError):
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
            return stat.rsplit(")", 1)[1].split()[0] == "Z"
        return True

    return check


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    def wait(condition: Callable[[], bool]) -> None:
        limit = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < limit, "waited in vain"
            time.sleep(0.02)

    return wait
