"""A bank of paired virtual cells: what one repeat of a level gives on a simulated machine, many times over."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from loadgen.profiles.loader import load_profile
from loadgen.simulator.config import engine_config
from loadgen.simulator.core import SimulatedCore
from loadgen.simulator.hardware import PRESETS, Hardware
from loadgen.simulator.model import SimRequest
from loadgen.simulator.noise import MILD
from loadgen.simulator.population import Population, build_population
from loadgen.simulator.text import TextModel
from loadgen.simulator.truth import Bench, Effort
from loadgen.simulator.virtual import VirtualLoop, VirtualResult, run_closed_loop
from loadgen.workloads.registry import get_workload

PROFILES = Path(__file__).resolve().parents[2] / "server_profiles"
WINDOW_S = 2.5
MIN_REQUESTS = 20
REQUESTS_PER_WORKER = 4
"""A window is over after 2.5 s and max(4 C, 20) requests, as in a sweep of a real server."""
SETTLE = 1.0
"""Request durations between the last worker's start and the window's opening, as in a sweep."""
STEPPED = 40
"""Up to here the truth is worked out at every whole concurrency around a crossing; beyond, padding is below a tenth."""
JITTER = replace(MILD, start_effect=0.0, first_request=False)
"""The simulator's default noise of each step; what a server start adds is drawn when runs are composed."""
EFFORT = Effort(population=6000, sample=1200, relative_error=0.004)


@dataclass(frozen=True)
class Machine:
    """A simulated machine under one workload with one profile."""

    hardware: str
    workload: str
    profile: str
    levels: tuple[int, ...]
    seed: int = 0
    """Of the prompts and of all noise."""

    @property
    def name(self) -> str:
        return f"{self.hardware}, {self.workload}, {self.profile}"


@dataclass(frozen=True)
class Bank:
    """ln speed-ups of single repeats, by level, and the true ln speed-up of each level."""

    machine: Machine
    draws: dict[int, tuple[float, ...]]
    seconds: dict[int, float]
    """Mean measured seconds of a pair (both windows), by level."""
    truth: dict[int, float]
    truth_error: float
    """Largest relative standard error of the true speed-ups."""
    true_crossings: tuple[float, ...]


class Cells:
    """Simulates single cells of one machine, each with prompts and noise of its own.

    A cell's prompts are drawn anew, without replacement, from the population that the truth is worked out of.
    """

    def __init__(self, machine: Machine, hardware: Hardware | None = None, *, settle: float = SETTLE) -> None:
        self.machine = machine
        self._hardware = hardware or PRESETS[machine.hardware]
        self._text = TextModel(kept=EFFORT.population + 1)
        self._plain = engine_config(load_profile("baseline", PROFILES))
        self._fast = engine_config(load_profile(machine.profile, PROFILES))
        self._settle = settle
        self._request_s: dict[tuple[int, int], float] = {}

    @cached_property
    def _population(self) -> Population:
        return build_population(
            get_workload(self.machine.workload),
            self._fast,
            self._text,
            seed=self.machine.seed,
            least=max(1500, 8 * max(self.machine.levels, default=64)),
            most=EFFORT.population,
            wanted_error=EFFORT.relative_error,
        )

    @cached_property
    def truth(self) -> Bench:
        """Long quiet runs of the same prompts."""
        return Bench(self._plain, self._fast, self._hardware, self._population, self._text, EFFORT)

    def ln_ratio(self, level: int, number: int) -> float:
        """ln of tokens/s, profile over baseline: both serve the same prompts, each with its own noise."""
        return ln_ratio(*self.pair(level, number))

    def pair(self, level: int, number: int) -> tuple[VirtualResult, VirtualResult]:
        """The baseline's window and the profile's."""
        rng = np.random.default_rng((self.machine.seed, level, number))
        pool = self._population.requests
        requests = [pool[i] for i in rng.permutation(len(pool))]
        plain, fast = (self._window(side, requests, level, 2 * number + side) for side in (0, 1))
        return plain, fast

    def _window(self, side: int, requests: Sequence[SimRequest], level: int, seed: int) -> VirtualResult:
        """Workers start spread over one request's duration at this level, which the warm-up told, as in a sweep."""
        known = (side, level)
        if known not in self._request_s:
            warm = self._run(side, requests, seed, VirtualLoop(level, 2 * level, settle_requests=level))
            self._request_s[known] = level * warm.window_s / warm.requests
        loop = VirtualLoop(
            level,
            max(REQUESTS_PER_WORKER * level, MIN_REQUESTS),
            window_s=WINDOW_S,
            spread_s=self._request_s[known],
            settle_requests=round(self._settle * (level - 1)),
        )
        return self._run(side, requests, seed, loop)

    def _run(self, side: int, requests: Sequence[SimRequest], seed: int, loop: VirtualLoop) -> VirtualResult:
        noise = replace(JITTER, seed=100_000_000 * self.machine.seed + 1000 * loop.concurrency + seed)
        core = SimulatedCore((self._plain, self._fast)[side], self._hardware, noise=noise, text=self._text)
        return run_closed_loop(core, requests.__getitem__, loop)


def make_bank(machine: Machine, size: int) -> Bank:
    """`size` pairs of cells at each level, and the truth of the same prompts."""
    cells = Cells(machine)
    pairs = {level: [cells.pair(level, number) for number in range(size)] for level in machine.levels}
    true = [cells.truth.level(level) for level in machine.levels]
    crossings = tuple(crossing.concurrency for crossing in cells.truth.crossings(true))
    true += [cells.truth.level(level) for level in stepped(crossings) if level not in machine.levels]
    return Bank(
        machine,
        {level: tuple(ln_ratio(*pair) for pair in found) for level, found in pairs.items()},
        {level: math.fsum(a.window_s + b.window_s for a, b in found) / size for level, found in pairs.items()},
        {level.concurrency: math.log(level.speedup) for level in true},
        max(level.speedup_error for level in true),
        crossings,
    )


def stepped(crossings: Sequence[float]) -> list[int]:
    """Whole concurrencies around low crossings: the engine's batches are padded to graph sizes, so the truth has steps
    there that no curve through a few levels shows.
    """
    near = [range(math.floor(0.8 * place), math.ceil(1.25 * place) + 1) for place in crossings if place <= STEPPED]
    return sorted({level for levels in near for level in levels})


def ln_ratio(plain: VirtualResult, fast: VirtualResult) -> float:
    """ln of the speed-up in output tokens/s."""
    return math.log(fast.tokens_per_s / plain.tokens_per_s)
