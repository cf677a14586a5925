"""Which vLLM this machine has, how it starts, and what a CPU build needs."""

import os
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from loadgen.engines.credentials import refuse_secrets
from loadgen.errors import UsageError

VENV = Path(".venv-vllm")
CPU_MODEL = Path("models/smollm2")
API_SERVER = "vllm.entrypoints.openai.api_server"


@dataclass(frozen=True)
class LocalVllm:
    """A command that starts vLLM, and what has to be added to it."""

    command: tuple[str, ...]
    version: str | None = None
    """As the installed package says, before anything is started; None if it cannot be told."""
    cpu: bool = False
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    default_model: str | None = None
    remark: str = ""
    """What `arguments` and `environment` are for: shown to the user."""

    def arguments_for(self, model: str | None) -> tuple[str, ...]:
        """The whole command up to the config file; `vllm serve` takes its model by position, the module by option."""
        if model is None:
            return self.command
        if self.command[-1] == "serve":
            return (*self.command, model)
        return (*self.command, "--model", model)


def find_local_vllm(command: str | Sequence[str] | None = None, project: Path | None = None) -> LocalVllm | None:
    """The vLLM to use: the given command (`vllm serve`, `python -m vllm.entrypoints.openai.api_server`); else the
    project's `.venv-vllm`; else `vllm` on the path; None if there is none. UsageError for a command that is none.
    """
    root = (project or Path.cwd()).absolute()
    if command:
        return _given(_words(command) if isinstance(command, str) else list(command))
    python = root / VENV / "bin" / "python"
    if python.exists():
        return _from_venv(root, (str(python), "-m", API_SERVER), root / VENV)
    found = shutil.which("vllm")
    return LocalVllm((found, "serve"), version=_package_version(Path(found).parent.parent)) if found else None


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise UsageError(f"The vLLM command {command!r} cannot be read ({error}); close its quotes.") from None


def _given(words: list[str]) -> LocalVllm:
    refuse_secrets(tuple(words), "The vLLM command's")
    if not words or shutil.which(words[0]) is None:
        raise UsageError(
            f"The vLLM command {shlex.join(words)!r} cannot be run; give one such as VLLM_COMMAND='vllm serve'."
        )
    program = Path(shutil.which(words[0]) or words[0])
    if len(words) == 1 and program.name == "vllm":
        words = [*words, "serve"]
    # Not resolved: a virtual environment's python is a link to the system's.
    venv = program.absolute().parent.parent
    if API_SERVER in words and _is_cpu_build(venv):
        return _from_venv(Path.cwd(), tuple(words), venv)
    return LocalVllm(tuple(words), version=_package_version(venv))


def _from_venv(root: Path, command: tuple[str, ...], venv: Path) -> LocalVllm:
    if not _is_cpu_build(venv):
        return LocalVllm(command, version=_package_version(venv))
    environment = {
        # The cache's size in GiB; vLLM would take much more of a small machine.
        "VLLM_CPU_KVCACHE_SPACE": "1",
        # Nothing leaves the machine.
        "VLLM_NO_USAGE_STATS": "1",
    }
    openmp = next(iter(sorted(venv.glob("lib/libiomp5.so"))), None)
    if openmp:
        # vLLM warns of a large loss of speed under speculation without it.
        environment["LD_PRELOAD"] = os.pathsep.join(
            part for part in (str(openmp.absolute()), os.environ.get("LD_PRELOAD")) if part
        )
    model = root / CPU_MODEL
    return LocalVllm(
        command,
        version=_package_version(venv),
        cpu=True,
        # bfloat16 is emulated on AVX2 machines, and graph compilation takes minutes there.
        arguments=("--dtype", "float32", "--enforce-eager", "--max-model-len", "2048"),
        environment=environment,
        default_model=str(CPU_MODEL) if (model / "config.json").exists() else None,
        remark=(
            "CPU build: float32, no compilation, contexts up to 2048 tokens, 1 GiB of KV cache, "
            f"{'Intel OpenMP preloaded' if openmp else 'no Intel OpenMP found'}, usage statistics off"
        ),
    )


def _is_cpu_build(venv: Path) -> bool:
    return any(venv.glob("lib/python3*/site-packages/vllm_cpu-*.dist-info"))


def _package_version(venv: Path) -> str | None:
    for pattern in ("vllm_cpu-*.dist-info", "vllm-*.dist-info"):
        for folder in venv.glob(f"lib/python3*/site-packages/{pattern}"):
            return folder.name.removesuffix(".dist-info").split("-", 1)[1]
    return None
