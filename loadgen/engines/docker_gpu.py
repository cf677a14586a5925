"""Which GPUs a container gets, and whether two containers fit on one."""

from collections.abc import Sequence
from dataclasses import dataclass

from loadgen.engines.docker_compose import Service, last_value
from loadgen.errors import ServerError, UsageError

DEFAULT_SHARE = 0.92
"""gpu-memory-utilization of vLLM 0.32 where nothing is said (config/cache.py)."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class GpuUse:
    """A container on GPUs."""

    name: str
    gpus: frozenset[str] | None
    """Ids as nvidia-smi counts them; None: all of them, or not to be told."""
    share: float | None
    """Of the GPU's memory; None for a program that is no vLLM."""


def memory_share(command: Sequence[str]) -> float | None:
    """`--gpu-memory-utilization` of a vLLM command; None for another program."""
    value = last_value(command, "--gpu-memory-utilization")
    if value is None:
        return DEFAULT_SHARE if any("vllm" in word for word in command) else None
    try:
        return float(value)
    except ValueError:
        raise UsageError(f"--gpu-memory-utilization {value} is no number; give a share such as 0.9.") from None


def gpus_by_count(count: int) -> frozenset[str] | None:
    """The GPUs that Docker takes for `count`: the first ones; None for all."""
    return None if count < 0 else frozenset(str(index) for index in range(count))


def wanted_gpus(service: Service) -> frozenset[str] | None:
    """The GPUs of a service that reserves some."""
    if service.gpu_ids:
        return frozenset(service.gpu_ids)
    return gpus_by_count(service.gpu_count if service.gpu_count is not None else 0)


def overlap(one: frozenset[str] | None, other: frozenset[str] | None) -> bool:
    """True if the two may meet on a GPU."""
    return one is None or other is None or bool(one & other)


def check_fit(gpus: frozenset[str] | None, share: float | None, others: Sequence[GpuUse]) -> list[str]:
    """Warnings about containers on the same GPUs. ServerError if the memory shares do not fit (case C90)."""
    beside = [use for use in others if overlap(gpus, use.gpus)]
    known = [use for use in beside if use.share is not None]
    mine = DEFAULT_SHARE if share is None else share
    total = mine + sum(use.share or 0.0 for use in known)
    if known and total > 1.0 + _ROUNDING:
        names = ", ".join(f"{use.name} ({use.share:.2f})" for use in known)
        raise ServerError(
            f"GPU {_named(gpus)} is taken: with {mine:.2f} for this server and {names}, {total:.2f} of its memory "
            "would be promised; stop the other container, lower GPU_MEMORY_UTILIZATION for both, or take another GPU "
            "with GPU_IDS."
        )
    return [
        f"Container {use.name} is on GPU {_named(gpus)} too: what it does falls into the measurement; stop it."
        for use in beside
    ]


def gpu_group(
    service: Service, total: int | None, ours: Sequence[GpuUse], strangers: Sequence[GpuUse] = ()
) -> tuple[str, ...]:
    """GPU ids for one more server of several that run side by side: none that a server of `ours` has, and best none
    that a stranger is on. `total` is the number of GPUs here, None if unknown. ServerError if none is left.
    """
    if service.gpu_ids:
        pool, size = list(service.gpu_ids), _parallel(service)
    elif total is None:
        raise ServerError("nvidia-smi does not tell how many GPUs are here; name them with GPU_IDS=0,1.")
    else:
        pool = [str(index) for index in range(total)]
        size = service.gpu_count if service.gpu_count and service.gpu_count > 0 else _parallel(service)
    groups = [tuple(pool[start : start + size]) for start in range(0, len(pool) - size + 1, size)]
    free = [group for group in groups if not any(overlap(frozenset(group), use.gpus) for use in ours)]
    if not free:
        raise ServerError(
            f"Side by side needs {size} more GPU{'s' if size > 1 else ''} than the {len(pool)} here; leave "
            "--side-by-side out, or compare fewer profiles."
        )
    return min(free, key=lambda group: sum(overlap(frozenset(group), use.gpus) for use in strangers))


def _parallel(service: Service) -> int:
    sizes = (last_value(service.command, f"--{kind}-parallel-size") or "1" for kind in ("tensor", "pipeline"))
    product = 1
    for size in sizes:
        product *= int(size) if size.isdecimal() else 1
    return product


def _named(gpus: frozenset[str] | None) -> str:
    return ", ".join(sorted(gpus)) if gpus else "of this machine"
