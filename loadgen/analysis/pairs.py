"""Pairs: the cell of a profile beside the baseline cell that served the same prompts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from loadgen.store.model import CellKey, CellResult, Condition


@dataclass(frozen=True)
class Pair:
    """Two cells that differ in the profile alone."""

    baseline: CellResult
    profile: CellResult

    @property
    def key(self) -> CellKey:
        """The profile's key: it names the pair."""
        return self.profile.key


@dataclass(frozen=True)
class Pairing:
    """All pairs of one profile under one condition, by level and repeat; and the cells that found no partner."""

    profile: str
    condition: Condition
    pairs: tuple[Pair, ...]
    alone: tuple[CellKey, ...] = ()

    def levels(self) -> tuple[int, ...]:
        """The levels that have a pair, ascending."""
        return tuple(sorted({pair.key.level for pair in self.pairs}))

    def at(self, level: int) -> tuple[Pair, ...]:
        """The pairs at one level, by session and repeat."""
        return tuple(pair for pair in self.pairs if pair.key.level == level)


def pair_cells(cells: Iterable[CellResult], against: str) -> tuple[Pairing, ...]:
    """One pairing per profile and condition that has cells, sorted, so that the order of `cells` changes nothing.

    Of two cells with one key (a cell measured again) the one measured later counts.
    """
    latest: dict[CellKey, CellResult] = {}
    for cell in sorted(cells, key=_measured):
        latest[cell.key] = cell
    baselines = {_place(key): cell for key, cell in latest.items() if key.profile == against}
    groups = sorted({(key.profile, key.condition) for key in latest if key.profile != against})
    return tuple(_pairing(profile, condition, latest, baselines) for profile, condition in groups)


def _pairing(
    profile: str,
    condition: Condition,
    cells: dict[CellKey, CellResult],
    baselines: dict[tuple[Condition, int, int, int], CellResult],
) -> Pairing:
    own = sorted(key for key in cells if key.profile == profile and key.condition == condition)
    pairs = tuple(Pair(baselines[_place(key)], cells[key]) for key in own if _place(key) in baselines)
    return Pairing(profile, condition, pairs, tuple(key for key in own if _place(key) not in baselines))


def _place(key: CellKey) -> tuple[Condition, int, int, int]:
    """What the two cells of a pair have in common."""
    return key.condition, key.level, key.repeat, key.session


def _measured(cell: CellResult) -> tuple[int, str, str]:
    return cell.order, cell.started_at, repr(cell)


def sessions_of(pairs: Sequence[Pair]) -> int:
    """How many sessions (starts of both servers) the pairs come from."""
    return len({pair.key.session for pair in pairs})
