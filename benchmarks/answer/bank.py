"""A bank of paired virtual cells: what one repeat of a level gives on a simulated machine, many times over."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from loadgen.profiles.loader import load_profile
from loadgen.simulator.config import EngineConfig, engine_config
from loadgen.simulator.core import SimulatedCore
from loadgen.simulator.hardware import PRESETS, Hardware
from loadgen.simulator.model import SimRequest
from loadgen.simulator.noise import MILD
from loadgen.simulator.population import sim_request
from loadgen.simulator.text import TextModel
from loadgen.simulator.tokens import encode
from loadgen.simulator.truth import Effort, truth
from loadgen.simulator.virtual import VirtualLoop, VirtualResult, run_closed_loop
from loadgen.workloads.base import PromptRequest
from loadgen.workloads.registry import get_workload

PROFILES = Path(__file__).resolve().parents[2] / "server_profiles"
WINDOW_S = 2.5
MIN_REQUESTS = 20
REQUESTS_PER_WORKER = 4
"""A window is over after 2.5 s and max(4 C, 20) requests, as in a sweep of a real server."""
JITTER = replace(MILD, start_effect=0.0, first_request=False)
"""The simulator's default noise of each step; what a server start adds is drawn when runs are composed."""


@dataclass(frozen=True)
class Machine:
    """A simulated machine under one workload with one profile."""

    hardware: str
    workload: str
    profile: str
    levels: tuple[int, ...]

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
    """Simulates single cells of one machine, each with prompts and noise of its own."""

    def __init__(self, machine: Machine, hardware: Hardware | None = None) -> None:
        self._hardware = hardware or PRESETS[machine.hardware]
        self._workload = get_workload(machine.workload)
        self._text = TextModel(kept=4000)
        self._plain = engine_config(load_profile("baseline", PROFILES))
        self._fast = engine_config(load_profile(machine.profile, PROFILES))

    def ln_ratio(self, level: int, number: int, *, window_s: float = WINDOW_S) -> float:
        """ln of tokens/s, profile over baseline: both serve the same prompts, each with its own noise."""
        return ln_ratio(*self.pair(level, number, window_s=window_s))

    def pair(self, level: int, number: int, *, window_s: float = WINDOW_S) -> tuple[VirtualResult, VirtualResult]:
        """The baseline's window and the profile's."""
        count = 7 * level + 40
        while True:
            wanted = PromptRequest(seed=71, level=level, repeat=number, count=count, purpose="measure")
            prompts = self._workload.prompts(wanted, lambda text: len(encode(text)))
            requests = [sim_request(prompt) for prompt in prompts]
            try:
                sides = (self._plain, self._fast)
                plain, fast = (self._run(c, requests, level, 2 * number + i, window_s) for i, c in enumerate(sides))
            except ValueError:  # the prompts ran out
                count *= 2
                continue
            return plain, fast

    def _run(
        self, config: EngineConfig, requests: Sequence[SimRequest], level: int, seed: int, window_s: float
    ) -> VirtualResult:
        noise = replace(JITTER, seed=1000 * level + seed)
        core = SimulatedCore(config, self._hardware, noise=noise, text=self._text)
        requests_wanted = max(REQUESTS_PER_WORKER * level, MIN_REQUESTS)
        loop = VirtualLoop(level, requests_wanted, window_s=window_s, settle_requests=1)
        return run_closed_loop(core, requests.__getitem__, loop)


def make_bank(machine: Machine, size: int, effort: Effort) -> Bank:
    """`size` pairs of cells at each level, and the truth."""
    cells = Cells(machine)
    pairs = {level: [cells.pair(level, number) for number in range(size)] for level in machine.levels}
    true = truth(
        load_profile(machine.profile, PROFILES),
        PRESETS[machine.hardware],
        get_workload(machine.workload),
        machine.levels,
        effort=effort,
    )
    return Bank(
        machine,
        {level: tuple(ln_ratio(*pair) for pair in found) for level, found in pairs.items()},
        {level: math.fsum(a.window_s + b.window_s for a, b in found) / size for level, found in pairs.items()},
        {level.concurrency: math.log(level.speedup) for level in true.levels},
        max(level.speedup_error for level in true.levels),
        tuple(crossing.concurrency for crossing in true.crossings),
    )


def ln_ratio(plain: VirtualResult, fast: VirtualResult) -> float:
    """ln of the speed-up in output tokens/s."""
    return math.log(fast.tokens_per_s / plain.tokens_per_s)
