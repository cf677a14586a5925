"""vLLM in a container. Compose starts it, from the very file of `make up`; the Docker SDK watches it."""

import asyncio
import os
import re
import shlex
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2

from loadgen.engines import gpu
from loadgen.engines.base import EngineEvent, EngineListener, ReadyServer, StartRequest
from loadgen.engines.child import Graces
from loadgen.engines.credentials import without_secrets
from loadgen.engines.docker_compose import SERVICE, Compose, Service, find_compose
from loadgen.engines.docker_cures import cure
from loadgen.engines.docker_gpu import GpuUse, check_fit, gpu_group, memory_share, wanted_gpus
from loadgen.engines.docker_override import PREFIX, Override, local_folder, project_name
from loadgen.engines.docker_watch import DockerWatch, connect
from loadgen.engines.effective import effective_from_log
from loadgen.engines.managed import Launch, ManagedEngine
from loadgen.engines.ports import is_free, port_holder
from loadgen.errors import ServerError, UsageError
from loadgen.profiles.compat import check_profile
from loadgen.profiles.model import ServerProfile

RELEASE_TIMEOUT_S = 60.0
SETTLE_S = 10.0
STOP_GRACE = Graces(sigint_s=80.0, sigterm_s=20.0, sigkill_s=10.0)
"""The Compose file grants 60 s; then Compose kills by itself."""
_UP = Path(__file__).with_name("docker_up.py")
_OUT_OF_MEMORY = "The kernel ended it for want of main memory: give the machine or the container more."
_PULL = "loadgen-pull"
_UPSTREAM = re.compile(r"^(docker\.io/)?vllm/vllm-openai[:@]")


@dataclass(frozen=True)
class _Project:
    """One server's Compose project."""

    name: str
    service: Service
    gpus: frozenset[str] | None
    since: int
    """Unix seconds, for the engine's events."""


class DockerEngine(ManagedEngine):
    """Starts the Compose file's service `vllm` with one profile, in a project of its own."""

    name = "docker"
    simulated = False
    slow = False

    def __init__(
        self,
        *,
        model: str | None = None,
        side_by_side: bool = False,
        folder: Path | None = None,
        port: int | None = None,
        graces: Graces | None = None,
        watch: DockerWatch | None = None,
        release_timeout_s: float = RELEASE_TIMEOUT_S,
    ) -> None:
        given = os.environ.get("VLLM_PORT", "")
        super().__init__(port=port or (int(given) if given.isdecimal() else None), graces=graces or STOP_GRACE)
        # Two servers at once share nothing that is measured only if each has GPUs of its own.
        self.can_run_together = side_by_side
        self._side_by_side = side_by_side
        if side_by_side and self._port is not None:
            raise UsageError("Two servers cannot both listen on VLLM_PORT; unset it for --side-by-side.")
        self._model = model
        self._release_timeout_s = release_timeout_s
        self._compose: Compose = find_compose(folder)
        self._watch = watch or connect()
        self._projects: dict[str, _Project] = {}
        """Profile → its project, from the launch on."""
        self._idle_mib: dict[int, int] | None = None
        """What the GPUs held before the first start."""
        self._has_image = False
        self._placing = asyncio.Lock()
        self._last: dict[str, _Project] = {}
        """Profile → its latest project, also when it is down: Docker still knows how it ended."""

    async def start(self, request: StartRequest, listener: EngineListener) -> ReadyServer:
        """A server that has answered one completion; its `effective` holds the image's id and digests."""
        name = request.profile.name
        self._last.pop(name, None)
        # Asked for here already: nobody waits for gigabytes to hear that a port is taken.
        self._choose_port()
        await self._have_image(request, listener)
        try:
            ready = await super().start(request, listener)
        except ServerError as error:
            remedy = cure(str(error))
            if name in self._last and await self._out_of_memory(self._last[name]):
                remedy = _OUT_OF_MEMORY
            if remedy and remedy not in str(error):
                raise ServerError(f"{remedy} {error}") from None
            raise
        try:
            return replace(ready, **await asyncio.to_thread(self._facts, name, ready))
        except BaseException:
            await self.stop(ready, listener)
            raise

    async def prepare(self, request: StartRequest, port: int) -> Launch:
        """Files and words for Compose; UsageError or ServerError for what could not run."""
        # One after the other, so that two servers that start together see each other's GPUs.
        async with self._placing:
            return await self._prepare(request, port)

    def effective(self, log: str, launch: Launch) -> dict[str, Any]:
        """What the log tells; of the environment only the server's own part counts."""
        own = {key.removeprefix(PREFIX): v for key, v in launch.environment.items() if key.startswith(PREFIX)}
        return effective_from_log(log, own)

    async def released(self, request_name: str, listener: EngineListener) -> None:
        """No container and network is left, and the GPU memory is free; what is not is named at the next start."""
        project = self._projects.pop(request_name, None)
        if project is None:
            return
        began = time.monotonic()

        def report(text: str) -> None:
            listener(EngineEvent(request_name, "stopping", time.monotonic() - began, text))

        if left := await asyncio.to_thread(self._watch.remains, project.name):
            report(f"removing {', '.join(left)}")
            await asyncio.to_thread(self._watch.remove_remains, project.name)
        if project.service.wants_gpu and self._idle_mib is not None:
            await gpu.wait_released(self._idle_of(project.gpus), self._release_timeout_s, report)

    async def check_alive(self, server: ReadyServer) -> str | None:
        """None while the container runs; else how it ended, with its last words."""
        project, child = self._projects.get(server.profile), self._children.get(server.url)
        if project is not None and child is not None and child.returncode is None:
            if not await self._has_ended(project, server.url):
                return None
            # The container has ended; Compose is about to notice, and takes the project down.
            await child.exited()
        sentence = await super().check_alive(server)
        if sentence is None or project is None:
            return sentence
        return f"{_OUT_OF_MEMORY} {sentence}" if await self._out_of_memory(project) else sentence

    async def close(self) -> None:
        """Ends whatever still runs."""
        await super().close()
        for project in tuple(self._projects.values()):
            await asyncio.to_thread(self._watch.remove_remains, project.name)
        self._projects.clear()
        await asyncio.to_thread(self._watch.close)

    async def _prepare(self, request: StartRequest, port: int) -> Launch:
        profile = request.profile
        project = project_name(request.log_path, profile.name)
        override = request.log_path.with_suffix(".compose.yml")
        override.parent.mkdir(parents=True, exist_ok=True)
        environment = self._environment(request, port)
        network = await asyncio.to_thread(self._watch.stack_network, self._compose.folder)
        parts = Override(tuple(request.environment), network, local_folder(environment.get("MODEL")))
        override.write_text(parts.text(), encoding="utf-8")
        service = await asyncio.to_thread(self._compose.resolve, project, environment, override)
        warnings = check_service(profile, service)
        gpus, found = await self._place(service)
        if self._side_by_side and gpus:
            override.write_text(replace(parts, gpu_ids=tuple(sorted(gpus))).text(), encoding="utf-8")
        words = self._compose.words(project, override)
        if service.wants_gpu:
            await self._check_memory(gpus)
        self._projects[profile.name] = _Project(project, service, gpus, int(time.time()))
        self._last[profile.name] = self._projects[profile.name]
        key = environment.get("VLLM_API_KEY")
        return Launch(
            command=(sys.executable, "-I", "-S", str(_UP), SERVICE, *words),
            environment=environment,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            remark=f"{service.image}: {shlex.join(without_secrets(service.command))}",
            warnings=(*warnings, *found),
            shown=("docker", "compose", "-p", project, "up", SERVICE),
        )

    def _environment(self, request: StartRequest, port: int) -> dict[str, str]:
        """For Compose: the variables of the Compose file, and the server's own ones under a prefix."""
        found = {
            **os.environ,
            **{f"{PREFIX}{name}": value for name, value in request.environment.items()},
            "COMPOSE_PROFILES": "gpu",
            "PROFILE": request.config_path.stem,
            "SERVER_PROFILES": str(request.config_path.parent.absolute()),
            "VLLM_PORT": str(port),
            "LOADGEN_ARGS": shlex.join(request.extra_args),
        }
        model = request.model or self._model
        if model:
            found["MODEL"] = str(local_folder(model) or model)
        return found

    async def _place(self, service: Service) -> tuple[frozenset[str] | None, list[str]]:
        """The server's GPUs, and warnings about who else is on them."""
        if not service.wants_gpu:
            return frozenset(), []
        ours = [
            GpuUse(project.name, project.gpus, memory_share(project.service.command))
            for project in self._projects.values()
        ]
        strangers = await asyncio.to_thread(
            self._watch.gpu_uses, frozenset(project.name for project in self._projects.values())
        )
        gpus = wanted_gpus(service)
        if self._side_by_side:
            gpus = frozenset(gpu_group(service, len(await gpu.gpu_names()) or None, ours, strangers))
        elif ours:
            raise ServerError("Another server of this run is still up; only --side-by-side runs two at once.")
        return gpus, check_fit(gpus, memory_share(service.command), [*strangers, *ours])

    async def _check_memory(self, gpus: frozenset[str] | None) -> None:
        """The first start learns what the GPUs hold without us; each later one must find no more than that there."""
        if self._idle_mib is None:
            self._idle_mib = await gpu.used_mib()
        elif not await gpu.wait_released(self._idle_of(gpus), 0.0, lambda text: None):
            raise ServerError(
                f"GPU memory of the last server is still held, by {await gpu.holders()}; end that process and go on "
                "with --resume."
            )

    def _idle_of(self, gpus: frozenset[str] | None) -> dict[int, int]:
        """What these GPUs may hold without a server of ours; the others may hold anything."""
        idle = self._idle_mib or {}
        return {index: used if gpus is None or str(index) in gpus else sys.maxsize for index, used in idle.items()}

    async def _have_image(self, request: StartRequest, listener: EngineListener) -> None:
        """Pulls a missing image before the start, since gigabytes must not count as a slow start."""
        if self._has_image:
            return
        environment = self._environment(request, 0)
        service = await asyncio.to_thread(self._compose.resolve, _PULL, environment)
        if not await asyncio.to_thread(self._watch.has_image, service.image):
            listener(EngineEvent(request.profile.name, "waiting", 0.0, f"pulling {service.image}, once"))
            await self._pull(service.image, environment)
        self._has_image = True

    async def _pull(self, image: str, environment: Mapping[str, str]) -> None:
        process = await asyncio.create_subprocess_exec(
            *self._compose.words(_PULL),
            "pull",
            SERVICE,
            env=dict(environment),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            _, errors = await process.communicate()
        except BaseException:
            process.kill()
            await process.wait()
            raise
        if process.returncode != 0:
            text = errors.decode(errors="replace")
            last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no reason given")
            raise ServerError(f"The image {image} cannot be had: {last[:200]}. {cure(text)}".strip())

    def _facts(self, name: str, ready: ReadyServer) -> dict[str, Any]:
        project = self._projects[name]
        state = self._watch.state(project.name)
        return {
            "pid": state.pid if state else None,
            "effective": {
                **ready.effective,
                **self._watch.facts(project.name),
                "container_command": list(without_secrets(project.service.command)),
                "gpus": None if project.gpus is None else sorted(project.gpus),
            },
        }

    async def _has_ended(self, project: _Project, url: str) -> bool:
        """True if the container has ended. Its connections break before Docker knows, so that a server that does not
        answer is looked at again for a while; one that still runs then hangs, and is no dead one.
        """
        until = time.monotonic() + SETTLE_S
        while True:
            state = await asyncio.to_thread(self._watch.state, project.name)
            if state is None or state.exit_code is not None:
                return True
            if time.monotonic() > until or await answers(url):
                return False
            await asyncio.sleep(0.2)

    async def _out_of_memory(self, project: _Project) -> bool:
        return await asyncio.to_thread(self._watch.was_oom_killed, project.name, project.since)

    def _choose_port(self) -> int:
        """As its parent; of a port that Docker holds it names the container."""
        if self._port is not None and not is_free(self._port):
            container = self._watch.publisher(self._port)
            holder = f"container {container}" if container else port_holder(self._port)
            raise ServerError(f"Port {self._port} is taken by {holder}; stop it, or choose another VLLM_PORT.")
        return super()._choose_port()


async def answers(url: str) -> bool:
    """True if a server gives any answer to `/health`."""
    try:
        async with httpx2.AsyncClient(trust_env=False, timeout=2.0) as client:
            await client.get(f"{url}/health")
    except (httpx2.TransportError, OSError):
        return False
    return True


def check_service(profile: ServerProfile, service: Service) -> tuple[str, ...]:
    """Warnings that only the image's version tells. UsageError for a profile that this image or model cannot run."""
    if profile.method == "suffix" and _UPSTREAM.match(service.image):
        raise UsageError(
            f"Profile {profile.name} needs arctic-inference in the image; build it (docker build --target vllm-suffix "
            "-t loadgen-vllm-suffix:v0.32.0 .) and set VLLM_IMAGE=loadgen-vllm-suffix:v0.32.0 for all profiles."
        )
    told = check_profile(profile, vllm_version=None, model=service.model)
    return tuple(w for w in check_profile(profile, vllm_version=service.version, model=service.model) if w not in told)
