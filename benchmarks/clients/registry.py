"""Every measured client, the reference first."""

import subprocess
import sys
from pathlib import Path

from benchmarks.clients import aiperf, guidellm
from benchmarks.clients.base import VENVS, Client
from benchmarks.clients.loadgen_load import LoadgenLoad
from benchmarks.clients.loops import HTTPX, OURS, REFERENCE, VLLM_BENCH

CLIENTS: tuple[Client, ...] = (
    REFERENCE,
    OURS,
    LoadgenLoad(),
    VLLM_BENCH,
    guidellm.Guidellm(),
    aiperf.Aiperf(),
    HTTPX,
)
BY_NAME = {client.name: client for client in CLIENTS}


def install(log: Path) -> dict[str, str]:
    """Installs guidellm and aiperf where they are missing; what failed, by name."""
    failed = {}
    for venv, requirement in ((guidellm.VENV, guidellm.REQUIREMENT), (aiperf.VENV, aiperf.REQUIREMENT)):
        name = venv.name
        stamp = venv / f".{requirement}"
        if stamp.exists():
            continue
        VENVS.mkdir(parents=True, exist_ok=True)
        with (log / f"{name}.log").open("w", encoding="utf-8") as out:
            for step in (
                [sys.executable, "-m", "venv", str(venv)],
                [str(venv / "bin" / "python"), "-m", "pip", "install", "-q", requirement],
            ):
                if subprocess.run(step, stdout=out, stderr=out, check=False).returncode:
                    failed[name] = f"pip could not install {requirement}; see {log / (name + '.log')}"
                    break
            else:
                stamp.touch()
    return failed
