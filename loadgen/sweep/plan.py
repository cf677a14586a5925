"""The experiment plan: which servers are up when, and which cell is measured next."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from loadgen.store.model import CellKey, Condition
from loadgen.workloads.base import Sampling

ORDERS = ("together", "blocks", "alternate")


@dataclass(frozen=True)
class CellShape:
    """How long a cell lasts."""

    window_s: float = 2.5
    """At least."""
    window_requests: float = 1.5
    """At least so many request durations: in less, too few requests end to tell a speed-up of a few percent."""
    min_requests: int = 4
    requests_per_worker: int = 0
    """The window also lasts for so many requests per worker (up to `max_window_s`): a level's first tokens come in
    bursts, and windows that cut few requests scatter (docs/method.md, part 9)."""
    max_window_s: float = 60.0
    settle_s: float = 0.1
    settle_requests: float = 1.0
    """The window opens so many request durations after the last worker's start (issue 4). Before, the first requests,
    which ran with few others, make a ratio near 1 come out 0.5 to 0.8 % high (docs/method.md, part 3)."""

    def settle_for(self, level: int, request_s: float) -> float:
        """Seconds between the last worker's start and the window's opening; a single worker has none to wait for."""
        wanted_s = self.settle_requests * request_s * (level - 1) / level
        return max(self.settle_s, min(wanted_s, self.max_window_s))


@dataclass(frozen=True)
class SweepPlan:
    """Everything that decides what is measured, and in which order."""

    profiles: tuple[str, ...]
    """The baseline first."""
    conditions: tuple[Condition, ...]
    levels: tuple[int, ...]
    repeats: int
    seed: int
    order: str
    """`together`: all servers up, cells alternate between them. `blocks`: one server after the other. `alternate`:
    servers restart in A B B A order, once per session."""
    sessions: int = 1
    shape: CellShape = field(default_factory=CellShape)
    sampling: Sampling = field(default_factory=Sampling)
    max_tokens: int | None = None
    keep_text: bool = False
    extension: tuple[tuple[int, int], ...] = ()
    """(level, repeats in all) that a resume added; they come after the plan's own cells, whose order stays."""

    @property
    def top_level(self) -> int:
        """The highest level that is measured."""
        return max((*self.levels, *(level for level, _ in self.extension)))


@dataclass(frozen=True)
class Stage:
    """Servers that are up at the same time, and the cells measured meanwhile, in order."""

    session: int
    profiles: tuple[str, ...]
    cells: tuple[CellKey, ...]


def stages(plan: SweepPlan) -> tuple[Stage, ...]:
    """The plan in its order. Level order is seeded, and the same for all profiles; repeats are outermost, so that a
    run that is stopped early has all levels.
    """
    return tuple(_stages(plan))


def _stages(plan: SweepPlan) -> Iterator[Stage]:
    for session in range(plan.sessions):
        if plan.order == "together":
            yield Stage(session, plan.profiles, tuple(_interleaved(plan, session)))
            continue
        # A B B A: drift over the run falls on both sides alike.
        turn = plan.profiles if session % 2 == 0 else plan.profiles[::-1]
        for profile in turn:
            keys = tuple(CellKey(profile, c, level, r, session) for r, c, level in _places(plan, session))
            yield Stage(session, (profile,), keys)


def _interleaved(plan: SweepPlan, session: int) -> Iterator[CellKey]:
    for number, (repeat, condition, level) in enumerate(_places(plan, session)):
        turn = plan.profiles if (number + repeat) % 2 == 0 else plan.profiles[::-1]
        for profile in turn:
            yield CellKey(profile, condition, level, repeat, session)


def _places(plan: SweepPlan, session: int) -> Iterator[tuple[int, Condition, int]]:
    for repeat in range(plan.repeats):
        for index, condition in enumerate(plan.conditions):
            yield from ((repeat, condition, level) for level in level_order(plan, session, repeat, index))
    for repeat in range(max((repeats for _, repeats in plan.extension), default=0)):
        added = [n for n, repeats in plan.extension if repeat < repeats and not _planned(plan, n, repeat)]
        for index, condition in enumerate(plan.conditions):
            yield from ((repeat, condition, level) for level in _shuffled(plan, added, session, repeat, index))


def _planned(plan: SweepPlan, level: int, repeat: int) -> bool:
    return level in plan.levels and repeat < plan.repeats


def level_order(plan: SweepPlan, session: int, repeat: int, condition_index: int) -> tuple[int, ...]:
    """The levels as one repeat visits them: shuffled by the seed, odd repeats in reverse of the one before, so that
    each level stands early as often as late.
    """
    return _shuffled(plan, plan.levels, session, repeat, condition_index)


def _shuffled(
    plan: SweepPlan, levels: Iterable[int], session: int, repeat: int, condition_index: int
) -> tuple[int, ...]:
    rng = random.Random(f"{plan.seed}/{session}/{repeat // 2}/{condition_index}/levels")
    shuffled = list(levels)
    rng.shuffle(shuffled)
    return tuple(shuffled if repeat % 2 == 0 else shuffled[::-1])


def all_cells(plan: SweepPlan) -> tuple[CellKey, ...]:
    """Every cell of the plan, in order."""
    return tuple(key for stage in stages(plan) for key in stage.cells)


def stage_starts(keys: Iterable[CellKey], *, together: bool) -> set[tuple[str, int]]:
    """(profile, session) of each start of servers that these cells wait for, one after the other; the profile is empty
    where all of them start at once.
    """
    return {("" if together else key.profile, key.session) for key in keys}
