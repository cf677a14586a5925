"""Which profile of a run is which rung of a ladder of K."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loadgen.store.model import Manifest

SETTING = "ladder"
"""Key of the manifest's settings that holds the rungs."""


@dataclass(frozen=True)
class LadderArm:
    """What one profile of a ladder is."""

    of: str
    """The profile that it was derived from."""
    k: int
    constant_schedule: bool = False
    """Measured under [[1, max, K]], which prices PIECEWISE graphs and K = 0; else a static server."""


def ladder_of(manifest: Manifest) -> dict[str, LadderArm]:
    """Profile name → its rung; empty for a run without a ladder."""
    stored = manifest.settings.get(SETTING, {})
    if not isinstance(stored, Mapping):
        return {}
    return {str(name): _arm(facts) for name, facts in stored.items() if isinstance(facts, Mapping)}


def _arm(facts: Mapping[str, Any]) -> LadderArm:
    return LadderArm(str(facts["of"]), int(facts["k"]), bool(facts.get("constant_schedule", False)))
