"""What is true of a simulated pair of servers: expected tokens/s at every level and where speculation turns."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from loadgen.profiles.model import ServerProfile
from loadgen.simulator.config import DEFAULT_VERSION, EngineConfig, engine_config
from loadgen.simulator.core import SimulatedCore
from loadgen.simulator.hardware import Hardware
from loadgen.simulator.noise import QUIET
from loadgen.simulator.population import Population, build_population
from loadgen.simulator.stream import key_of
from loadgen.simulator.text import TextModel
from loadgen.simulator.virtual import VirtualLoop, VirtualResult, run_closed_loop
from loadgen.workloads.base import Workload

Status = Literal["found", "pays_throughout", "never_pays", "no_difference"]
BASELINE = ServerProfile("baseline", {})
_PARTS = 4


@dataclass(frozen=True)
class Effort:
    """How long a truth is computed."""

    population: int = 12000
    """Most prompts looked at to learn the acceptance; fewer once its error is small enough."""
    sample: int = 1600
    """Prompts that run at each level, of either profile."""
    relative_error: float = 0.0022
    """Of the acceptance; the speed-up's is smaller, as prefill is in it too."""


@dataclass(frozen=True)
class LevelTruth:
    """Both servers at one level; the same prompts in both."""

    concurrency: int
    baseline_tokens_per_s: float
    tokens_per_s: float
    speedup: float
    speedup_error: float
    """Relative standard error of the speed-up."""
    tpot_speedup: float
    """Ratio of mean TPOT, baseline / profile."""
    batch: float
    """Requests scheduled per step in the speculative server."""
    tokens_per_step: float | None
    acceptance_rate: float | None


@dataclass(frozen=True)
class TrueCrossing:
    """A pair of neighbouring integers between which the speed-up passes 1."""

    level_below: int
    level_above: int
    """`level_below` + 1."""
    concurrency: float
    """Where log speed-up is 0, interpolated between the two."""
    direction: Literal["down", "up"]
    """`down`: pays at `level_below`, costs at `level_above`."""


@dataclass(frozen=True)
class Truth:
    """The expected outcome of a sweep without noise."""

    profile: str
    against: str
    hardware: str
    workload: str
    levels: tuple[LevelTruth, ...]
    status: Status
    crossings: tuple[TrueCrossing, ...]
    prompts: int
    """Prompts that the acceptance comes from."""
    tokens_per_step: float
    """Under speculation, over all of them, at full K."""


def truth(
    profile: ServerProfile,
    hardware: Hardware,
    workload: Workload,
    levels: Sequence[int],
    seed: int = 0,
    against: ServerProfile = BASELINE,
    *,
    effort: Effort | None = None,
    shared: Mapping[str, Any] | None = None,
    version: str = DEFAULT_VERSION,
    input_tokens: int | None = None,
    temperature: float = 0.0,
) -> Truth:
    """The truth of a profile against another on one machine, at every level, with all crossings between levels.

    Long quiet runs in virtual time with common prompts; crossings by bisection over integer concurrency.
    """
    measure = effort or Effort()
    text = TextModel(kept=measure.population + 1)
    fast = engine_config(profile, shared=shared, version=version)
    population = build_population(
        workload,
        fast,
        text,
        seed=seed,
        least=min(measure.population, max(3 * measure.sample // _PARTS, 8 * max(levels))),
        most=max(measure.population, 8 * max(levels)),
        wanted_error=measure.relative_error,
        input_tokens=input_tokens,
        temperature=temperature,
    )
    bench = Bench(engine_config(against, shared=shared, version=version), fast, hardware, population, text, measure)
    found = {level: bench.level(level) for level in sorted(set(levels))}
    measured = tuple(found[level] for level in sorted(found))
    crossings = bench.crossings(measured)
    status: Status = "found" if crossings else "pays_throughout" if measured[0].speedup >= 1.0 else "never_pays"
    if all(level.speedup == 1.0 for level in measured):  # a profile against itself
        status = "no_difference"
    return Truth(
        profile.name,
        against.name,
        hardware.name,
        workload.name,
        measured,
        status,
        crossings,
        len(population.requests),
        population.tokens_per_step,
    )


class Bench:
    """Two configurations that run the same prompts."""

    def __init__(
        self,
        plain: EngineConfig,
        fast: EngineConfig,
        hardware: Hardware,
        population: Population,
        text: TextModel,
        effort: Effort,
    ) -> None:
        self._plain, self._fast, self._hardware = plain, fast, hardware
        self._population, self._text, self._effort = population, text, effort
        self._prompt_token_s = 2.0 * hardware.parameters / hardware.flops
        outputs = sum(population.plain_steps) + len(population.plain_steps)
        self._prompt_share = sum(len(r.prompt_token_ids) for r in population.requests) / outputs

    def level(self, concurrency: int) -> LevelTruth:
        """Both servers at one level: the sample in parts, whose spread gives the error of the runs."""
        settle = max(20, 2 * concurrency)
        spare = settle + 2 * concurrency
        window = min(max(self._effort.sample // _PARTS, 2 * concurrency), len(self._population.requests) - spare)
        pairs = []
        for part in range(_PARTS):
            # The prompts of a part end with spare ones, so that all workers are busy until the window closes.
            requests = self._population.sample(window + spare, key_of(concurrency, part))
            loop = VirtualLoop(concurrency, window, settle_requests=settle)
            pairs.append(tuple(self._run(config, requests, loop) for config in (self._plain, self._fast)))
        logs = [math.log(self._rate(fast) / self._rate(plain)) for plain, fast in pairs]
        mean = sum(logs) / len(logs)
        runs_error = math.sqrt(sum((log - mean) ** 2 for log in logs) / (len(logs) - 1) / len(logs))
        plain, fast = ([pair[side] for pair in pairs] for side in (0, 1))
        base = sum(map(self._rate, plain)) / len(plain)
        return LevelTruth(
            concurrency=concurrency,
            baseline_tokens_per_s=base,
            tokens_per_s=base * math.exp(mean),
            speedup=math.exp(mean),
            speedup_error=math.hypot(runs_error, self._population.relative_error * self._decode_share(fast)),
            tpot_speedup=_tpot(plain) / _tpot(fast),
            batch=sum(run.batch_mean for run in fast) / len(fast),
            tokens_per_step=_ratio(sum(r.tokens - r.chunks + r.request_steps for r in fast), fast, "request_steps"),
            acceptance_rate=_ratio(sum(run.accepted_tokens for run in fast), fast, "draft_tokens"),
        )

    def crossings(self, levels: Sequence[LevelTruth]) -> tuple[TrueCrossing, ...]:
        """Every sign change between neighbouring levels, narrowed to neighbouring integers by fresh runs."""
        found = []
        for low, high in pairwise(levels):
            if (low.speedup >= 1.0) == (high.speedup >= 1.0):
                continue
            below, above = low, high
            while above.concurrency - below.concurrency > 1:
                middle = self.level((below.concurrency + above.concurrency) // 2)
                if (middle.speedup >= 1.0) == (low.speedup >= 1.0):
                    below = middle
                else:
                    above = middle
            share = math.log(below.speedup) / (math.log(below.speedup) - math.log(above.speedup))
            direction: Literal["down", "up"] = "down" if low.speedup >= 1.0 else "up"
            found.append(TrueCrossing(below.concurrency, above.concurrency, below.concurrency + share, direction))
        return tuple(found)

    def _rate(self, run: VirtualResult) -> float:
        """Tokens/s of a window, with the prompts that its edges cut by chance brought to their expected share.

        A control variate: over a long time each output token comes with `prompt_share` prompt tokens; more or fewer
        of them inside the window took time that is known. Its expectation is 0, its effect a smaller variance.
        """
        surplus = (run.prompt_tokens - run.cached_tokens) - run.tokens * self._prompt_share
        return run.tokens / (run.window_s - surplus * self._prompt_token_s)

    def _decode_share(self, runs: Sequence[VirtualResult]) -> float:
        """Share of engine time that does not go to prompt tokens: how strongly acceptance moves the throughput."""
        prompt_tokens = sum(run.prompt_tokens - run.cached_tokens for run in runs)
        return max(0.0, 1.0 - prompt_tokens * self._prompt_token_s / sum(run.window_s for run in runs))

    def _run(self, config: EngineConfig, requests: Sequence[Any], loop: VirtualLoop) -> VirtualResult:
        core = SimulatedCore(config, self._hardware, noise=QUIET, text=self._text)
        return run_closed_loop(core, requests.__getitem__, loop)


def _tpot(runs: Sequence[VirtualResult]) -> float:
    values = [value for run in runs for value in run.tpot_s]
    return sum(values) / len(values)


def _ratio(part: int, runs: Sequence[VirtualResult], whole: str) -> float | None:
    total = sum(getattr(run, whole) for run in runs)
    return part / total if total else None
