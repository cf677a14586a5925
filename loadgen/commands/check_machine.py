"""Preflight: does this machine carry the stack? Each question is a function; each answer is findings and notes."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadgen.commands.lint_compose_file import read_compose
from loadgen.commands.lint_finding import Finding, Note
from loadgen.engines.docker_compose import FILE, Compose, find_compose, parse_service
from loadgen.engines.docker_cures import cure
from loadgen.engines.ports import is_free, port_holder
from loadgen.errors import LoadgenError
from loadgen.profiles.compat import check_profile
from loadgen.profiles.loader import list_profiles, load_profile

OLDEST_DOCKER = (20, 10)
_TIMEOUT_S = 120.0

Answer = Iterator[Finding | Note]


@dataclass(frozen=True)
class Reply:
    """What a program said."""

    code: int
    text: str

    @property
    def last_line(self) -> str:
        """Its last words."""
        lines = [line.strip() for line in self.text.splitlines() if line.strip()]
        return lines[-1][:200] if lines else "it gives no reason"


Run = Callable[[Sequence[str]], Reply]


def run_program(words: Sequence[str]) -> Reply:
    """Runs it; a missing program or a hung one is a failure with its reason."""
    try:
        done = subprocess.run(list(words), capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Reply(127, str(error))
    return Reply(done.returncode, done.stdout if done.returncode == 0 else done.stdout + done.stderr)


@dataclass(frozen=True)
class Machine:
    """This machine and the stack's settings; the fields are there so that tests can plant faults."""

    folder: Path
    must_have_docker: bool
    profile: str | None = None
    run: Run = run_program
    which: Callable[[str], str | None] = shutil.which
    free_bytes: Callable[[Path], int] = field(default=lambda path: shutil.disk_usage(path).free)


def check_machine(machine: Machine) -> Answer:
    """Everything that can be asked here."""
    config: dict[str, Any] | None = None
    has_docker = False
    for item in _docker(machine):
        has_docker = has_docker or isinstance(item, Note)
        yield item
    if has_docker:
        yield from _gpu(machine)
    for found in _compose(machine):
        if isinstance(found, dict):
            config = found
        else:
            yield found
    services: dict[str, Any] = config["services"] if config else _as_written(machine.folder)
    yield from _ports(machine, services, project=str((config or {}).get("name", "loadgen")), has_docker=has_docker)
    yield from _model_and_profiles(machine, services)
    yield from _promtool(machine)


def _docker(machine: Machine) -> Answer:
    must = machine.must_have_docker
    if machine.which("docker") is None:
        what = "Docker is missing; the engines process, url and simulator work without it"
        yield Finding("docker-missing", "docker", what, "install it (docs.docker.com/engine/install)", is_error=must)
        return
    reply = machine.run(["docker", "version", "--format", "{{.Server.Version}}"])
    if reply.code != 0:
        remedy = _remedy(reply.text, "start it: sudo systemctl start docker")
        yield Finding("docker-silent", "docker", f"Docker does not answer ({reply.last_line})", remedy, is_error=must)
        return
    version = reply.text.strip()
    if _numbers(version) < OLDEST_DOCKER:
        yield Finding("docker-old", "docker", f"Docker {version} is older than 20.10", "update it")
    yield Note("docker", f"Docker {version} answers")


def _gpu(machine: Machine) -> Answer:
    if machine.which("nvidia-smi") is None:
        yield Note("gpu", "no NVIDIA driver here (nvidia-smi is missing): the stack runs with the simulator")
        return
    listed = machine.run(["nvidia-smi", "-L"])
    if listed.code != 0 or not listed.text.strip():
        remedy = _remedy(listed.text, "look at `nvidia-smi`; a reboot loads the driver anew")
        yield Finding("gpu-driver", "gpu", f"the NVIDIA driver does not answer ({listed.last_line})", remedy)
        return
    toolkit = "install the NVIDIA Container Toolkit, run `sudo nvidia-ctk runtime configure --runtime=docker` and "
    toolkit += "restart Docker"
    info = machine.run(["docker", "info", "--format", "{{json .}}"])
    if info.code == 0 and "nvidia" not in info.text.lower():
        yield Finding("gpu-toolkit", "gpu", "Docker knows no NVIDIA runtime, so containers see no GPU", toolkit)
        return
    image = os.environ.get("VLLM_IMAGE", "")
    image = image or next(iter(_images(machine)), "")
    if not image:
        yield Note("gpu", "no vLLM image here yet: whether a container sees the GPU is known after the first pull")
        return
    tried = machine.run(["docker", "run", "--rm", "--gpus", "all", "--entrypoint", "nvidia-smi", image, "-L"])
    if tried.code == 0:
        yield Note("gpu", f"a container sees {len(tried.text.strip().splitlines())} GPU(s)")
    else:
        remedy = _remedy(tried.text, toolkit)
        yield Finding("gpu-in-docker", "gpu", f"a container does not see the GPU ({tried.last_line})", remedy)


def _images(machine: Machine) -> list[str]:
    reply = machine.run(["docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", "vllm/vllm-openai"])
    return [line for line in reply.text.split() if reply.code == 0 and not line.endswith("<none>")]


def _compose(machine: Machine) -> Iterator[Finding | Note | dict[str, Any]]:
    """Findings, and the resolved configuration of all services where Compose gives one."""
    try:
        compose: Compose = find_compose(machine.folder)
    except LoadgenError as error:
        what, _, remedy = str(error).rstrip(".").partition("; ")
        yield Finding("compose-missing", "compose", what, remedy, is_error=machine.must_have_docker)
        return
    yield Note("compose", f"Docker Compose {compose.version}")
    files = [word for file in compose.files for word in ("-f", str(file))]
    words = [*compose.command, "--project-directory", str(compose.folder), *files, "--profile", "*"]
    reply = machine.run([*words, "config", "--format", "json"])
    if reply.code != 0:
        remedy = "correct the file, or the variable in .env that it names"
        yield Finding("compose-config", str(compose.files[0]), f"Compose refuses it: {reply.last_line}", remedy)
        return
    try:
        resolved: dict[str, Any] = json.loads(reply.text)
    except ValueError:
        return
    yield Note("compose", "docker compose config is well")
    yield resolved


def _ports(machine: Machine, services: dict[str, Any], *, project: str, has_docker: bool) -> Answer:
    seen: set[int] = set()
    for name, service in services.items():
        for port in service.get("ports") or []:
            published = str(port.get("published", ""))
            if not published.isdecimal() or int(published) in seen:
                continue
            seen.add(int(published))
            if not is_free(int(published)) and not (has_docker and _is_ours(machine, published, project)):
                holder = port_holder(int(published))
                what = f"port {published} is taken by {holder}"
                yield Finding("port-taken", f"service {name}", what, f"stop it, or {_other_port(name)}")
    if seen:
        yield Note("ports", f"looked at {', '.join(map(str, sorted(seen)))}")


def _other_port(service: str) -> str:
    known = {"vllm": "VLLM", "simulator": "VLLM", "locust-master": "LOCUST"}
    return f"set {known.get(service, service.upper().replace('-', '_'))}_PORT in .env"


def _is_ours(machine: Machine, port: str, project: str) -> bool:
    """True if the stack itself is up and holds the port."""
    label = '{{.Label "com.docker.compose.project"}}'
    reply = machine.run(["docker", "ps", "--filter", f"publish={port}", "--format", label])
    return reply.code == 0 and project in reply.text.split()


def _model_and_profiles(machine: Machine, services: dict[str, Any]) -> Answer:
    service = parse_service(services["vllm"]) if "vllm" in services else None
    version = service.version if service else None
    names = [machine.profile] if machine.profile else list_profiles()
    well = 0
    for name in names:
        try:
            profile = load_profile(name)
            model = service.model if service and machine.profile else None
            for warning in check_profile(profile, vllm_version=version, model=model):
                what, _, remedy = warning.rstrip(".").partition("; ")
                if machine.profile:
                    remedy = remedy or "see docs/method.md, part 7"
                    yield Finding("profile", f"profile {name}", what, remedy, is_error=False)
            well += 1
        except LoadgenError as error:
            what, _, remedy = str(error).rstrip(".").partition("; ")
            must = machine.profile is not None
            yield Finding("profile", f"profile {name}", what, remedy or "choose another profile", is_error=must)
    yield Note("profiles", f"{well} of {len(names)} fit vLLM {version or 'of unknown version'}")
    if service and service.model:
        yield from _disk(machine, service.model, services["vllm"])


def _disk(machine: Machine, model: str, service: dict[str, Any]) -> Answer:
    cache = next(
        (
            Path(v["source"]).expanduser()
            for v in service.get("volumes") or []
            if str(v.get("target")).endswith("huggingface")
        ),
        None,
    )
    need = model_bytes(model)
    if cache is None or need is None:
        return
    if (cache / "hub" / f"models--{model.replace('/', '--')}").is_dir():
        yield Note("disk", f"{model} is in {cache}")
        return
    place = next((at for at in (cache, *cache.parents) if at.is_dir()), Path("/"))
    free = machine.free_bytes(place)
    if free < need * 1.1:
        what = f"{model} takes about {need / 1e9:.0f} GB and {place} has {free / 1e9:.0f} GB left"
        yield Finding("disk", "disk", what, "free some space, or set HF_CACHE to a larger disk")
    else:
        yield Note("disk", f"{free / 1e9:.0f} GB free at {place}, {model} takes about {need / 1e9:.0f} GB")


def model_bytes(model: str) -> int | None:
    """Bytes of the weights as the name tells: parameters x bytes each; None if it does not tell."""
    name = model.rsplit("/", 1)[-1]
    found = re.search(r"(?:(\d+)x)?(\d+(?:\.\d+)?)[bB](?![a-zA-Z])", name)
    if found is None:
        return None
    parameters = float(found[2]) * 1e9 * int(found[1] or 1)
    if re.search(r"awq|gptq|int4|w4a16|nvfp4|4bit|mxfp4", name, re.IGNORECASE):
        return int(parameters * 0.6)
    return int(parameters * (1.1 if re.search(r"fp8|int8|w8a8|8bit", name, re.IGNORECASE) else 2.0))


def _promtool(machine: Machine) -> Answer:
    if machine.which("promtool") is None:
        return
    path = machine.folder / "dashboards" / "prometheus.yml"
    reply = machine.run(["promtool", "check", "config", str(path)])
    if reply.code != 0:
        yield Finding("prometheus-config", str(path), f"promtool refuses it: {reply.last_line}", "correct the file")
    else:
        yield Note("prometheus", "promtool check config is well")


def _remedy(text: str, otherwise: str) -> str:
    """The cure of a known failure, without the cause that stands before it."""
    known_cure = cure(text).rstrip(".")
    return known_cure.partition(": ")[2] or known_cure or otherwise


def _as_written(folder: Path) -> dict[str, Any]:
    """The services by their defaults, for a machine without Compose."""
    if not (folder / FILE).is_file():
        return {}
    found: dict[str, Any] = {}
    for service in read_compose(folder / FILE):
        ports = [{"published": port.published, "target": port.target} for port in service.ports]
        mounts = [{"target": target, "source": source} for source, target in service.bind_mounts]
        found[service.name] = {
            "image": service.image,
            "command": list(service.words),
            "ports": ports,
            "volumes": mounts,
        }
    return found


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])
