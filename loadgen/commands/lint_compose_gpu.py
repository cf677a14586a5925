"""How a Compose service asks for GPUs (cases C90 and C91)."""

from collections.abc import Iterator, Mapping
from typing import Any

from loadgen.commands.lint_compose_file import Service
from loadgen.commands.lint_finding import Finding

DEFAULT_SHARE = 0.9
"""vLLM's --gpu-memory-utilization."""
_RESERVE = "reserve devices: [{driver: nvidia, count: 1, capabilities: [gpu]}]"


def lint_gpu(service: Service, where: str) -> Iterator[Finding]:
    """Faults of one service's GPU reservation."""
    if "cpu" in service.image or service.option("--device") == "cpu":
        return
    devices = service.gpu_devices
    if not devices and not service.raw.get("gpus") and service.raw.get("runtime") != "nvidia":
        yield Finding("no-gpu", where, "it reserves no GPU, so it sees none", _RESERVE)
    for device in devices:
        yield from _device(device, where)


def _device(device: Mapping[str, Any], where: str) -> Iterator[Finding]:
    if "gpu" not in (device.get("capabilities") or []):
        yield Finding("gpu-capabilities", where, "the reservation has no capabilities", "add capabilities: [gpu]")
    if "count" in device and "device_ids" in device:
        yield Finding("count-and-ids", where, "count and device_ids exclude each other", "keep one of them")
    if "count" not in device and "device_ids" not in device:
        what = "without count and device_ids some versions of Compose reserve no GPU, others all"
        yield Finding("gpu-count", where, what, "add count: 1")


def lint_two_on_one_gpu(one: Service, other: Service, where: str) -> Iterator[Finding]:
    """A fault if two model servers can be up at once on the same GPU."""
    if not _together(one, other):
        return
    ids, other_ids = _ids(one), _ids(other)
    if ids and other_ids and not ids & other_ids:
        return
    share = _share(one) + _share(other)
    names = f"{one.name} and {other.name}"
    if share > 1.0:
        what = f"{names} may share a GPU and want {share:.2f} of its memory"
        yield Finding("two-on-one-gpu", where, what, "give each its own profiles or device_ids, or lower both shares")
    elif not (_waits_for(one, other) or _waits_for(other, one)):
        what = f"{names} start at once on one GPU, and each takes the memory that the other is about to use for its own"
        yield Finding("two-on-one-gpu", where, what, "let one wait: depends_on with condition: service_healthy")


def _together(one: Service, other: Service) -> bool:
    """True unless each is in profiles that the other is not in."""
    mine, its = set(one.raw.get("profiles") or []), set(other.raw.get("profiles") or [])
    return not mine or not its or bool(mine & its)


def _ids(service: Service) -> set[str]:
    return {str(name) for device in service.gpu_devices for name in device.get("device_ids") or []}


def _share(service: Service) -> float:
    try:
        return float(service.option("--gpu-memory-utilization") or DEFAULT_SHARE)
    except ValueError:
        return DEFAULT_SHARE


def _waits_for(one: Service, other: Service) -> bool:
    wanted = one.raw.get("depends_on") or {}
    return isinstance(wanted, dict) and (wanted.get(other.name) or {}).get("condition") == "service_healthy"
