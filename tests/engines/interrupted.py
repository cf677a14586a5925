"""Run as a program of its own by test_interrupt.py: starts fake servers as a sweep would, then waits to be ended."""

import asyncio
import signal
import sys
from pathlib import Path

from loadgen.engines.base import EngineEvent, StartRequest
from loadgen.engines.child import Graces
from loadgen.engines.managed import Launch, ManagedEngine
from loadgen.profiles.loader import parse_profile

FAKE = Path(__file__).with_name("fake_server.py")


class Engine(ManagedEngine):
    name = "fake"
    simulated = False
    can_run_together = True

    async def prepare(self, request: StartRequest, port: int) -> Launch:
        return Launch((sys.executable, str(FAKE), "--port", str(port), *request.extra_args), {})


def say(event: EngineEvent) -> None:
    sys.stdout.write(f"{event.phase} {event.detail}\n")
    sys.stdout.flush()


async def run(folder: Path, arguments: list[str]) -> None:
    engine = Engine(graces=Graces(sigint_s=0.5, sigterm_s=0.2, sigkill_s=5.0))
    # As commands do it: each SIGINT cancels what is under way, a second one also the orderly end.
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
    profile = parse_profile("{}", name="p", label="p.yaml")
    request = StartRequest(profile, folder / "p.yaml", folder / "p.log", extra_args=tuple(arguments))
    try:
        await engine.start(request, say)
        await asyncio.sleep(600)
    finally:
        await engine.close()


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), sys.argv[2:]))
