"""The simulator engine's command."""

import sys
from collections.abc import Callable
from dataclasses import replace

from loadgen.engines.base import StartRequest
from loadgen.engines.simulator import SimulatorEngine

RequestFor = Callable[..., StartRequest]


async def test_the_command_counts_each_profiles_starts(request_for: RequestFor) -> None:
    engine = SimulatorEngine(hardware="h200-8b", seed=7)
    request = replace(request_for("--more"), model="org/m")

    first = await engine.prepare(request, 1234)
    second = await engine.prepare(request, 1235)
    other = await engine.prepare(request_for(name="ngram"), 1236)

    assert first.command == (
        *(sys.executable, "-m", "loadgen", "simulate", "--config", str(request.config_path)),
        *("--port", "1234", "--seed", "7", "--start", "0", "--hardware", "h200-8b", "--model", "org/m", "--more"),
    )
    assert second.command[second.command.index("--start") + 1] == "1"
    assert other.command[other.command.index("--start") + 1] == "0"
    assert first.environment["FAKE_SETTING"] == "as given"
    assert "PATH" in first.environment
