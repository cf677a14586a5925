"""Which engine to use, and why: the sentence is shown to the user and stands in the manifest."""

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from loadgen.engines.base import Engine
from loadgen.engines.docker import DockerEngine
from loadgen.engines.local_vllm import find_local_vllm
from loadgen.engines.process import ProcessEngine
from loadgen.engines.simulator import SimulatorEngine
from loadgen.engines.url import UrlEngine, parse_urls
from loadgen.errors import UsageError


@dataclass(frozen=True)
class EngineRequest:
    """What was asked for; plain data, stored in the manifest so that a run can be resumed."""

    name: str = "auto"
    url: str | None = None
    model: str | None = None
    hardware: str | None = None
    """The simulator's preset."""
    vllm_command: str | None = None
    seed: int = 0
    side_by_side: bool = False
    """Docker: both servers at once, each on GPUs of its own."""
    vllm_version: str | None = None
    """The simulator's: which vLLM it behaves as."""

    def stored(self) -> dict[str, Any]:
        """As JSON data; no secret is among it."""
        return asdict(self)


@dataclass(frozen=True)
class Machine:
    """What `auto` looks at."""

    gpu: str | None
    """The first NVIDIA GPU's name."""
    docker: bool


def choose_engine(request: EngineRequest, machine: Machine | None = None) -> tuple[Engine, str]:
    """The engine and the reason, one sentence. UsageError for an unknown name or for one that cannot work here."""
    engine, reason = _chosen(request, machine)
    if request.vllm_version and not isinstance(engine, SimulatorEngine):
        raise UsageError(
            f"--vllm-version is the simulator's, but the engine is {engine.name}; leave it out, or take "
            "--engine simulator."
        )
    return engine, reason


def _chosen(request: EngineRequest, machine: Machine | None) -> tuple[Engine, str]:
    if request.name == "auto":
        return _auto(request, machine or look_around())
    maker = ENGINES.get(request.name)
    if maker is None:
        raise UsageError(f"Unknown engine {request.name!r}; known are auto, {', '.join(ENGINES)}.")
    if request.url and request.name != "url":
        raise UsageError(f"A URL was given, but the engine is {request.name}; take --engine url or leave the URL out.")
    if request.side_by_side and request.name != "docker":
        raise UsageError(f"--side-by-side needs the engine docker, not {request.name}; leave it out.")
    engine = maker(request)
    remark = engine.vllm.remark if isinstance(engine, ProcessEngine) else ""
    return engine, f"{request.name}, as asked{f' ({remark})' if remark else ''}."


def look_around() -> Machine:
    """The GPU and the Docker client of this machine; takes a moment where `nvidia-smi` is there."""
    return Machine(gpu=_first_gpu(), docker=shutil.which("docker") is not None)


def _auto(request: EngineRequest, machine: Machine) -> tuple[Engine, str]:
    if request.url:
        return _url(request), "url: a URL was given."
    passed = ""
    if machine.gpu and machine.docker:
        try:
            return _docker(request), f"docker: Docker and an {machine.gpu} are here."
        except UsageError as error:
            passed = f"Docker and an {machine.gpu} are here, but {_half_sentence(error)}; "
    local = find_local_vllm(request.vllm_command)
    if local and machine.gpu and not local.cpu:
        return _process(request), f"process: {passed}a local vLLM ({local.command[0]}) and an {machine.gpu} are here."
    if local and local.cpu:
        why = "the local vLLM is a CPU build, which is slow and taken only when asked for (ENGINE=process)"
    elif local:
        why = "there is a local vLLM, but no NVIDIA GPU"
    elif machine.gpu:
        why = f"there is an {machine.gpu}, but no local vLLM (install it, or set VLLM_COMMAND)"
    else:
        why = "there is no URL, no NVIDIA GPU and no local vLLM"
    return _simulator(request), f"simulator: {passed}{why}."


def _simulator(request: EngineRequest) -> SimulatorEngine:
    return SimulatorEngine(hardware=request.hardware, seed=request.seed, vllm_version=request.vllm_version)


def _process(request: EngineRequest) -> ProcessEngine:
    return ProcessEngine(vllm_command=request.vllm_command, model=request.model)


def _url(request: EngineRequest) -> UrlEngine:
    if not request.url:
        raise UsageError("Engine url needs to know where: --url http://HOST:PORT or baseline=URL,ngram=URL.")
    return UrlEngine(parse_urls(request.url))


def _docker(request: EngineRequest) -> DockerEngine:
    return DockerEngine(model=request.model, side_by_side=request.side_by_side)


def _half_sentence(error: UsageError) -> str:
    text = str(error).rstrip(".")
    return text[:1].lower() + text[1:] if not text.startswith("Docker") else text


ENGINES: dict[str, Callable[[EngineRequest], SimulatorEngine | ProcessEngine | UrlEngine | DockerEngine]] = {
    "docker": _docker,
    "simulator": _simulator,
    "process": _process,
    "url": _url,
}


def _first_gpu() -> str | None:
    path = shutil.which("nvidia-smi")
    if path is None:
        return None
    try:
        answer = subprocess.run(
            [str(Path(path)), "--query-gpu=name", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    names = [line.strip() for line in answer.stdout.splitlines() if line.strip()]
    return names[0] if answer.returncode == 0 and names else None
