"""From measured cells to log ratios between any two servers of a verification."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from loadgen.analysis.checks import contexts_of, judge
from loadgen.analysis.pairs import pair_cells
from loadgen.analysis.ratios import THROUGHPUT, TPOT, log_ratios, mean_and_sd, units
from loadgen.analysis.verify_model import Claim, Role
from loadgen.store.model import CellResult, Manifest


@dataclass(frozen=True)
class Sample:
    """ln(claimed / other) at one load, over independent units; `seconds`: of one more repeat of all servers."""

    place: str
    concurrency: int
    claimed: Role
    other: Role
    values: tuple[float, ...]
    seconds: float = 0.0
    closed: bool = True

    @property
    def mean(self) -> float:
        """Mean ln ratio."""
        return mean_and_sd(self.values)[0]

    @property
    def sd(self) -> float | None:
        """Standard deviation of the units; None below two."""
        return mean_and_sd(self.values)[1]


def samples(claim: Claim, manifest: Manifest, cells: Sequence[CellResult]) -> tuple[Sample, ...]:
    """The claimed server against every other one, at every level; void cells fall with their pairs."""
    found: list[Sample] = []
    table = ratios(claim, manifest, cells)
    seconds = _seconds(cells)
    for level in sorted({level for _, _, level in table}):
        claimed = claim.role_at(level)
        for other in claim.arms:
            values = table.get((claimed, other, level))
            if values:
                found.append(Sample(str(level), level, claimed, other, values, seconds[level]))
    return tuple(found)


def ratios(
    claim: Claim, manifest: Manifest, cells: Sequence[CellResult]
) -> Mapping[tuple[Role, Role, int], tuple[float, ...]]:
    """(one, other, level) → ln(one / other) over the independent units of valid pairs; both directions."""
    contexts = contexts_of(manifest, cells)
    measure = TPOT if claim.objective == "tpot" else THROUGHPUT
    roles = {name: role for role, name in claim.arms.items()}
    found: dict[tuple[Role, Role, int], tuple[float, ...]] = {}
    for other_name, other in roles.items():
        ours = [cell for cell in cells if cell.key.profile in roles and cell.key.condition == claim.condition]
        for pairing in pair_cells(ours, other_name):
            for level in pairing.levels():
                valid = [pair for pair in pairing.at(level) if judge(pair, contexts).valid]
                values = units(log_ratios(valid, measure))
                if values:
                    found[roles[pairing.profile], other, level] = values
    return found


def _seconds(cells: Sequence[CellResult]) -> dict[int, float]:
    """Level → measured seconds of one repeat of all servers."""
    windows: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        windows[cell.key.level][cell.key.profile].append(cell.window_s)
    return {level: math.fsum(fmean(found) for found in of.values()) for level, of in windows.items()}
