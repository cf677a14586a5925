"""What a measured client is."""

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from benchmarks.loops.common import Load

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "bench"
VENVS = CACHE / "venvs"
PYTHON = ROOT / ".venv" / "bin" / "python"
TOKENIZER = ROOT / "models" / "smollm2"
NO_TOKENIZER = "it needs a tokenizer on disk: `make vllm-cpu` makes models/smollm2"

Key = Literal["tag", "x_request_id"]


@dataclass(frozen=True)
class Reading:
    """What a client says about its run."""

    cpu_s: float | None = None
    """CPU seconds of the load alone; None if only the whole command can be measured."""
    key: Key = "tag"
    """By what `ttft_s` is matched with the server's log."""
    ttft_s: dict[str, float] = field(default_factory=dict)
    reported_ttft_s: tuple[float, float] | None = None
    """(mean, p99) where no request can be told from another."""


class Client(Protocol):
    """One client behind the benchmark."""

    name: str
    what: str
    whole_command: bool
    """Its CPU time is known for the whole command only, so it needs a short run to compare with."""

    def missing(self) -> str | None:
        """Why it cannot run here; None if it can."""

    def version(self) -> str:
        """What is measured, with its version."""

    def argv(self, load: Load, folder: Path) -> list[str]:
        """The command; it may write into `folder`, which is fresh and absolute."""

    def read(self, folder: Path) -> Reading:
        """What it wrote. Raises OSError, KeyError or ValueError if that is not there or not whole."""


@dataclass
class LoopClient:
    """A load loop in a script of ours: its CPU time is that of the loop, without imports and start."""

    name: str
    what: str
    python: Path
    script: Path
    packages: tuple[str, ...]
    whole_command: bool = False

    def missing(self) -> str | None:
        """Its environment or one of its packages."""
        if not self.python.exists():
            return f"{self.python.relative_to(ROOT)} is not there"
        return None if all(package_version(self.python, one) for one in self.packages) else "its packages are missing"

    def version(self) -> str:
        """Its packages' versions."""
        return ", ".join(f"{one} {package_version(self.python, one)}" for one in self.packages)

    def argv(self, load: Load, folder: Path) -> list[str]:
        """The script with the load."""
        return [
            str(self.python),
            str(self.script),
            *("--url", load.url, "--concurrency", str(load.concurrency), "--requests", str(load.requests)),
            *("--max-tokens", str(load.max_tokens), "--out", str(folder / "loop.json")),
        ]

    def read(self, folder: Path) -> Reading:
        """The loop's own file."""
        said = json.loads((folder / "loop.json").read_text(encoding="utf-8"))
        return Reading(cpu_s=said["cpu_s"], ttft_s=said["ttft_s"])


def package_version(python: Path, package: str) -> str | None:
    """A package's version in an environment; None if either is not there."""
    if not python.exists():
        return None
    code = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))"
    done = subprocess.run([str(python), "-c", code, package], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None
