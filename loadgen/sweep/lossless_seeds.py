"""Whether each sample carries a seed of its own: a test that can be repeated, where the server survives it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loadgen.errors import UsageError

MODES = ("auto", "on", "off")


@dataclass(frozen=True)
class Seeding:
    """What is done, and why."""

    sent: bool
    why: str


def decide_seeds(mode: str, servers: Mapping[str, Mapping[str, Any]], *, simulated: bool) -> Seeding:
    """Seeds for a simulator and for vLLM on a GPU, none for vLLM on a CPU or where the device is not known.

    `servers` maps a profile to what its server really runs with (`device` as vLLM's log names it). vLLM 0.32 on a CPU
    ends with "CPU Generator does not use offset" when it takes a seeded draw back. UsageError for an unknown mode.
    """
    if mode not in MODES:
        raise UsageError(f"--seeds {mode} is unknown; the known ones are {', '.join(MODES)}.")
    if mode != "auto":
        return Seeding(mode == "on", f"--seeds {mode}, as asked")
    if simulated:
        return Seeding(True, "the simulator takes them")
    devices = {str(facts.get("device") or "unknown") for facts in servers.values()}
    if "cpu" in devices:
        return Seeding(False, "vLLM 0.32 on a CPU dies of seeded requests; --seeds on sends them all the same")
    if devices == {"cuda"}:
        return Seeding(True, "vLLM on a GPU takes them; --seeds off tests requests without")
    return Seeding(False, "the servers do not tell their device; --seeds on sends them to a GPU")
