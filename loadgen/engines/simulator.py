"""The embedded simulator as a child process."""

import os
import sys
from pathlib import Path

from loadgen.engines.base import StartRequest
from loadgen.engines.child import Graces
from loadgen.engines.managed import Launch, ManagedEngine

_PACKAGE_PARENT = Path(__file__).resolve().parents[2]


class SimulatorEngine(ManagedEngine):
    """Starts `loadgen simulate` with the profile's config file."""

    name = "simulator"
    simulated = True
    # Its engine runs by a clock of its own and keeps to deadlines, so an idle partner takes nothing from it.
    can_run_together = True
    slow = False

    def __init__(
        self,
        *,
        hardware: str | None = None,
        seed: int = 0,
        vllm_version: str | None = None,
        port: int | None = None,
        graces: Graces | None = None,
    ) -> None:
        super().__init__(port=port, graces=graces or Graces(sigint_s=5.0, sigterm_s=3.0, sigkill_s=5.0))
        self._hardware = hardware
        self._seed = seed
        self.version = vllm_version
        """The vLLM that it behaves as; None for its own default."""
        self._starts: dict[str, int] = {}

    async def prepare(self, request: StartRequest, port: int) -> Launch:
        """The command; `--start` counts this profile's starts, since each start has its own luck."""
        number = self._starts.get(request.profile.name, 0)
        self._starts[request.profile.name] = number + 1
        command = [sys.executable, "-m", "loadgen", "simulate", "--config", str(request.config_path)]
        command += ["--port", str(port), "--seed", str(self._seed), "--start", str(number)]
        if self._hardware:
            command += ["--hardware", self._hardware]
        if self.version:
            command += ["--vllm-version", self.version]
        if request.model:
            command += ["--model", request.model]
        environment = {**os.environ, **request.environment}
        # The child must run this very loadgen, wherever the user stands.
        inherited = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = os.pathsep.join([str(_PACKAGE_PARENT), *([inherited] if inherited else [])])
        return Launch((*command, *request.extra_args), environment)
