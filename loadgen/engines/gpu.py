"""NVIDIA GPUs of this machine, as `nvidia-smi` tells: which there are, and how much memory is in use by whom."""

import asyncio
import shutil
from collections.abc import Callable

from loadgen.clock import now_s

POLL_S = 1.0
QUERY_TIMEOUT_S = 20.0
TOLERANCE_MIB = 512
"""A driver keeps some memory of its own, and displays come and go."""


def has_nvidia_smi() -> bool:
    """True if `nvidia-smi` can be called."""
    return shutil.which("nvidia-smi") is not None


async def gpu_names() -> list[str]:
    """The GPUs' names; empty without a GPU, a driver or `nvidia-smi`."""
    return (await _query("--query-gpu=name", "--format=csv,noheader")) or []


async def used_mib() -> dict[int, int] | None:
    """GPU index → MiB in use; None if it cannot be told."""
    lines = await _query("--query-gpu=index,memory.used", "--format=csv,noheader,nounits")
    if lines is None:
        return None
    found: dict[int, int] = {}
    for line in lines:
        index, _, used = line.partition(",")
        # MIG slices and some boards answer `[N/A]`.
        if index.strip().isdecimal() and used.strip().isdecimal():
            found[int(index)] = int(used)
    return found or None


async def holders() -> str:
    """Who holds GPU memory: `pid 4711 (VLLM::EngineCore, 34000 MiB)`, comma-separated; `nobody that can be seen`."""
    lines = await _query("--query-compute-apps=pid,process_name,used_memory", "--format=csv,noheader,nounits")
    parts = [[part.strip() for part in line.split(",")] for line in lines or []]
    named = [f"pid {pid} ({name}, {used} MiB)" for pid, name, used in (part for part in parts if len(part) == 3)]
    return ", ".join(named) or "nobody that can be seen from here"


async def wait_released(before: dict[int, int], timeout_s: float, report: Callable[[str], None]) -> bool:
    """True once every GPU is down to what it held in `before`, within a tolerance; False when the time is over.

    The port is free at once when a server ends, its GPU memory is not (case C89).
    """
    until = now_s() + timeout_s
    while True:
        now = await used_mib()
        held = {index: used for index, used in (now or {}).items() if used > before.get(index, 0) + TOLERANCE_MIB}
        if not held:
            return True
        report("waiting for GPU memory: " + ", ".join(f"GPU {index} holds {used} MiB" for index, used in held.items()))
        if now_s() >= until:
            return False
        await asyncio.sleep(POLL_S)


async def _query(*arguments: str) -> list[str] | None:
    """The lines of the answer; None if there is none."""
    path = shutil.which("nvidia-smi")
    if path is None:
        return None
    try:
        process = await asyncio.create_subprocess_exec(
            path, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
    except OSError:
        return None
    try:
        async with asyncio.timeout(QUERY_TIMEOUT_S):
            output, _ = await process.communicate()
    except TimeoutError:
        # A hung driver: the query is given up, not the run.
        process.kill()
        await process.wait()
        return None
    if process.returncode != 0:
        return None
    return [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
