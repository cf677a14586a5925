"""What the Docker engine says of a project's containers, by the Docker SDK: state, exit code, OOM kill, image."""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadgen.engines.docker_gpu import GpuUse, gpus_by_count, memory_share
from loadgen.errors import ServerError, UsageError

PROJECT_LABEL = "com.docker.compose.project"
SERVICE_LABEL = "com.docker.compose.service"
FOLDER_LABEL = "com.docker.compose.project.working_dir"
_TIMEOUT_S = 30


@dataclass(frozen=True)
class ContainerState:
    """One look at a container."""

    status: str
    """`created`, `running`, `exited`, …"""
    pid: int | None
    exit_code: int | None
    oom_killed: bool


class DockerWatch:
    """Asks one Docker engine. Every call blocks for milliseconds; call it from a thread in async code."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def close(self) -> None:
        """Lets the connection go."""
        self._client.close()

    def state(self, project: str) -> ContainerState | None:
        """The project's container; None if there is none (any more)."""
        containers = self._of(project)
        if not containers:
            return None
        state = containers[0].attrs["State"]
        running = bool(state.get("Running"))
        return ContainerState(
            status=str(state.get("Status")),
            pid=int(state["Pid"]) if state.get("Pid") else None,
            exit_code=None if running else int(state.get("ExitCode", 0)),
            oom_killed=bool(state.get("OOMKilled")),
        )

    def was_oom_killed(self, project: str, since: int) -> bool:
        """True if the kernel killed a process of the project for memory after `since` (Unix seconds); also when the
        container is gone by now: the engine remembers its last events.
        """
        state = self.state(project)
        if state is not None and state.oom_killed:
            return True
        filters = {"label": f"{PROJECT_LABEL}={project}", "event": ["oom"], "type": "container"}
        until = int(time.time()) + 1
        return any(True for _ in self._client.events(since=since, until=until, filters=filters, decode=True))

    def facts(self, project: str) -> dict[str, Any]:
        """For the manifest: `container`, `image` (name), `image_id`, `image_digests`; empty if it is gone."""
        containers = self._of(project)
        if not containers:
            return {}
        container = containers[0]
        return {
            "container": container.name,
            "image": container.attrs["Config"]["Image"],
            "image_id": container.attrs["Image"],
            "image_digests": list(self._image(container.attrs["Image"]).get("RepoDigests") or []),
        }

    def has_image(self, name: str) -> bool:
        """True if the image is on this machine."""
        return bool(self._image(name))

    def gpu_uses(self, except_projects: frozenset[str] = frozenset()) -> list[GpuUse]:
        """Running containers on GPUs, those of the given projects left out."""
        found: list[GpuUse] = []
        for container in self._client.containers.list():
            if container.labels.get(PROJECT_LABEL) in except_projects:
                continue
            requests = [
                request
                for request in container.attrs["HostConfig"].get("DeviceRequests") or []
                if any("gpu" in group for group in request.get("Capabilities") or [])
            ]
            if requests:
                words = [*(container.attrs.get("Args") or []), str(container.attrs.get("Path", ""))]
                found.append(GpuUse(container.name, _gpus(requests), memory_share(words)))
        return found

    def publisher(self, port: int) -> str | None:
        """The running container that publishes this port of the host; None if there is none."""
        for container in self._client.containers.list():
            for bindings in (container.attrs["NetworkSettings"].get("Ports") or {}).values():
                if any(binding.get("HostPort") == str(port) for binding in bindings or []):
                    return str(container.name)
        return None

    def stack_network(self, folder: Path) -> str | None:
        """The network of the stack that runs from this folder (`make up`), so that its Prometheus sees our servers."""
        labels = [f"{SERVICE_LABEL}=prometheus", f"{FOLDER_LABEL}={folder}"]
        for container in self._client.containers.list(filters={"label": labels}):
            names = list(container.attrs["NetworkSettings"]["Networks"])
            if names:
                return str(names[0])
        return None

    def remains(self, project: str) -> list[str]:
        """Names of the project's containers and networks that are still there."""
        label = {"label": f"{PROJECT_LABEL}={project}"}
        networks = [network.name for network in self._client.networks.list(filters=label)]
        return [container.name for container in self._of(project)] + networks

    def remove_remains(self, project: str) -> None:
        """Removes them: for what came into being while its creator was ended."""
        label = {"label": f"{PROJECT_LABEL}={project}"}
        for container in self._of(project):
            with _if_gone():
                container.remove(force=True)
        for network in self._client.networks.list(filters=label):
            with _if_gone():
                network.remove()

    def containers(self, label: str) -> list[Any]:
        """All containers with this label, `name` or `name=value`, whatever their state."""
        with _if_gone():
            return list(self._client.containers.list(all=True, filters={"label": label}))
        return []

    def _of(self, project: str) -> list[Any]:
        return self.containers(f"{PROJECT_LABEL}={project}")

    def _image(self, name: str) -> Mapping[str, Any]:
        with _if_gone():
            attributes: Mapping[str, Any] = self._client.images.get(name).attrs
            return attributes
        return {}


def connect() -> DockerWatch:
    """The Docker engine that the `docker` command would talk to; UsageError with the cure if there is none."""
    try:
        import docker
        from docker.errors import DockerException
    except ImportError:
        raise UsageError(
            "The Docker SDK is missing; install it with .venv/bin/pip install --require-hashes -r "
            "requirements-stack.lock."
        ) from None
    address = os.environ.get("DOCKER_HOST") or _context_address()
    try:
        if address and not os.environ.get("DOCKER_HOST"):
            client = docker.DockerClient(base_url=address, timeout=_TIMEOUT_S)
        else:
            client = docker.from_env(timeout=_TIMEOUT_S)
        client.ping()
    except (DockerException, OSError) as error:
        raise UsageError(
            f"Docker does not answer ({str(error)[:120]}); start it, or let your user use it (group docker)."
        ) from None
    return DockerWatch(client)


def _context_address() -> str | None:
    """Where the `docker` command's context points to: rootless and desktop engines have sockets of their own."""
    path = shutil.which("docker")
    if path is None:
        return None
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        answer = subprocess.run(
            [path, "context", "inspect", "--format", "{{.Endpoints.docker.Host}}"],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        if answer.returncode == 0 and answer.stdout.startswith("unix://"):
            return answer.stdout.strip()
    return None


def _gpus(requests: list[dict[str, Any]]) -> frozenset[str] | None:
    ids: set[str] = set()
    for request in requests:
        given = [part for name in request.get("DeviceIDs") or [] for part in str(name).split(",")]
        counted = frozenset(given) if given else gpus_by_count(int(request.get("Count") or 0))
        # A UUID could be any of them.
        if counted is None or not all(name.isdecimal() for name in counted):
            return None
        ids |= counted
    return frozenset(ids)


@contextlib.contextmanager
def _if_gone() -> Iterator[None]:
    """Swallows "no such container" and the like; ServerError if the engine itself does not answer."""
    from docker.errors import DockerException, NotFound
    from requests.exceptions import RequestException

    try:
        yield
    except NotFound:
        return
    except (DockerException, RequestException) as error:
        raise ServerError(f"Docker does not answer any more ({str(error)[:120]}); look after its daemon.") from error
