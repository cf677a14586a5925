"""What a report takes from the run folder beyond cells: gauges, and the latencies of single requests."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from loadgen.load.record import Outcome
from loadgen.metrics.model import GaugeSample
from loadgen.store.folder import RunFolder
from loadgen.store.model import Condition
from loadgen.store.requests import StoredRequest

Place = tuple[Condition, str, int]
"""(condition, profile, level)."""


@dataclass
class Latencies:
    """Seconds of each request that ended well, all repeats together."""

    ttft_s: list[float] = field(default_factory=list)
    tpot_s: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Detail:
    """The fine grain of a run; empty where the folder has none."""

    gauges: Sequence[tuple[str, GaugeSample]] = ()
    """(profile, sample) in the order of measurement."""
    latencies: dict[Place, Latencies] = field(default_factory=dict)
    problem: str = ""
    """Why detail is missing although the folder has some."""


def read_detail(folder: Path) -> Detail:
    """The detail of a run folder, read line by line; missing files give an empty detail.

    A line that cannot be read ends the detail with a `problem`: the verdict rests on the cells and must not fail here.
    """
    run = RunFolder(folder)
    latencies: dict[Place, Latencies] = {}
    gauges: list[tuple[str, GaugeSample]] = []
    problem = ""
    try:
        for stored in run.requests():
            _add(latencies, stored)
        gauges.extend((gauge.cell.profile, gauge.sample) for gauge in run.gauges())
    except (OSError, ValueError) as error:
        problem = f"Some single requests or gauges are not drawn: {error}"
    return Detail(gauges, latencies, problem)


def _add(latencies: dict[Place, Latencies], stored: StoredRequest) -> None:
    """Counts a request that was measured and ended well."""
    record = stored.record
    if stored.phase != "measure" or record.outcome is not Outcome.OK:
        return
    place = latencies.setdefault((stored.cell.condition, stored.cell.profile, stored.cell.level), Latencies())
    if record.ttft_s is not None:
        place.ttft_s.append(record.ttft_s)
    if record.tpot_s is not None:
        place.tpot_s.append(record.tpot_s)
