"""What this machine can carry: open files, local ports, cores. Asked before any work starts."""

import os
import resource
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from loadgen.errors import UsageError

SPARE_FILES = 128
"""Logs, pipes, the run folder, scrapes."""
_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")


@dataclass(frozen=True)
class Limits:
    """Of this process and its children."""

    files: int
    """What a process may open; the hard limit, which we raise ours to."""
    ports: int
    """Connections that this machine can have to one server."""
    cores: int


def this_machine() -> Limits:
    """As they stand now; what cannot be told does not limit."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Limits(1 << 30 if hard == resource.RLIM_INFINITY else hard, _local_ports(), cores)


def require_carried(
    level: int,
    workers: int,
    option: str,
    limits: Limits | None = None,
    raise_files: Callable[[int], None] | None = None,
) -> None:
    """UsageError, with the way out, where this machine cannot hold so many requests in flight; else the soft limit of
    open files is raised to what they take. `option` is what the user gave, such as `--levels`.
    """
    have = limits or this_machine()
    each = -(-level // workers) + SPARE_FILES
    if each > have.files:
        raise UsageError(
            f"{option} {level} needs {each} open files in one process, and {have.files} are allowed here (ulimit -Hn); "
            f"lower it, split it with --workers, or raise that limit."
        )
    if level > have.ports:
        raise UsageError(
            f"{option} {level} needs as many local ports, and this machine has {have.ports} for one server; lower it, "
            "or widen net.ipv4.ip_local_port_range."
        )
    (raise_files or _raise_soft_limit)(each)


def advice(workers: int, limits: Limits | None = None) -> tuple[str, ...]:
    """What is to be said of load processes on so few cores; empty if nothing."""
    cores = (limits or this_machine()).cores
    if workers <= cores:
        return ()
    return (f"--workers {workers} share {cores} cores, and so wait for each other; {cores} would measure more surely.",)


def _raise_soft_limit(files: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))


def _local_ports() -> int:
    try:
        first, last = _PORTS.read_text(encoding="ascii").split()
        return int(last) - int(first) + 1
    except (OSError, ValueError):
        return 1 << 16
