"""Which profile of a run is which rung of a ladder of K."""

from dataclasses import dataclass

from loadgen.errors import UsageError
from loadgen.store.codec import convert
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
    """Profile name → its rung; empty for a run without a ladder. UsageError for what no loadgen writes."""
    stored = manifest.settings.get(SETTING) or {}
    try:
        found = convert(stored, dict[str, LadderArm])
    except ValueError as error:
        raise UsageError(
            f"settings.{SETTING} in the manifest of {manifest.run_id} cannot be read ({error}); repair or remove it."
        ) from error
    if wrong := next((name for name, arm in found.items() if arm.k < 0), None):
        raise UsageError(
            f"settings.{SETTING} in the manifest of {manifest.run_id} gives {wrong} a K below 0; repair or remove it."
        )
    return found
