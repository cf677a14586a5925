"""A simulated machine fitted to the step times of a run (docs/method.md, part 6)."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from loadgen.analysis.steps import StepGroup
from loadgen.simulator.config import EngineConfig
from loadgen.simulator.cost import CostModel, StepShape
from loadgen.simulator.hardware import Hardware
from loadgen.simulator.measured import ApiCost, MeasuredStep

SPREAD = {
    "bandwidth": 0.25,
    "flops": 0.25,
    "full_graph_s": 2.0,
    "piecewise_launch_s": 2.0,
    "eager_launch_s": 2.0,
    "host_step_s": 2.0,
    "host_request_s": 2.0,
    "spec_step_s": 2.0,
    "spec_request_s": 2.0,
    "draft_launch_s": 2.0,
    "lookup_request_s": 2.0,
}
"""The fitted fields, and how far (ln units) one may be from the base before the pull back weighs as much as one step
time that is off by `NOISE`. The rest stays the base's: sizes of the model, memory."""
RATES = ("bandwidth", "flops")
SPEED_SPREAD = 2.0
"""Both rates may also move together, as another GPU's do; their ratio differs less, and what a host takes more."""
NOISE = 0.05
"""Relative error of a step time: repeats of one cell differ by 2 to 10 % on an H200."""
MIN_POINTS = 6
TOLD = 0.5
"""A field is told by the run if its standard error is below this share of its spread beforehand."""


@dataclass(frozen=True)
class LevelError:
    """How far one level's foretold speed-up is off, relative, at the measured batch and tokens per step."""

    profile: str
    level: int
    fitted: float
    """By the machine fitted to all levels."""
    held_out: float | None
    """By a machine fitted without this level; None where too few are left."""


@dataclass(frozen=True)
class FittedHardware:
    """The machine, and how far it is off where it was fitted and where it was not."""

    hardware: Hardware
    points: int
    levels: tuple[int, ...]
    step_error: float
    """Root mean square of the relative errors of the step times."""
    errors: tuple[LevelError, ...]
    spread: Mapping[str, float]
    """Standard error of each fitted field's ln; near its `SPREAD` the run says nothing of it."""

    @property
    def speedup_error(self) -> float | None:
        """Largest relative error of a level's speed-up; None without a pair."""
        return max((abs(one.fitted) for one in self.errors), default=None)

    @property
    def held_out_error(self) -> float | None:
        """The same for levels that were not fitted."""
        return max((abs(one.held_out) for one in self.errors if one.held_out is not None), default=None)

    @property
    def told(self) -> tuple[str, ...]:
        """The fields that the run tells."""
        return tuple(name for name, error in self.spread.items() if error < TOLD * SPREAD[name])


def fit_hardware(
    base: Hardware,
    steps: Sequence[MeasuredStep],
    configs: Mapping[str, EngineConfig],
    against: str,
    name: str,
    api: ApiCost | None = None,
) -> FittedHardware:
    """The base with the fields that make its steps last as measured: least squares of ln step times, fields in ln,
    each held to the base by its `SPREAD` so that what the run cannot tell stays as it was. The API server's costs are
    taken as they are given, and what is left of the TTFT at one request becomes `request_latency_s`.

    ValueError with fewer than six step times, or where they are all of one profile.
    """
    usable = [step for step in steps if step.step_time_s > 0 and step.batch > 0]
    if len(usable) < MIN_POINTS or len({step.profile for step in usable}) < 2:
        raise ValueError(f"{len(usable)} step times; a fit needs {MIN_POINTS} of two profiles")
    values, spread = _fit(base, usable, configs)
    fitted = _moved(base, values)
    errors = [step_seconds(fitted, configs[step.profile], step) / step.step_time_s - 1 for step in usable]
    described = dataclasses.replace(
        _with_api(fitted, api, usable, configs, against), name=name, description=f"{base.name} fitted to a run"
    )
    return FittedHardware(
        described,
        len(usable),
        tuple(sorted({step.level for step in usable})),
        math.sqrt(math.fsum(error**2 for error in errors) / len(errors)),
        _level_errors(base, fitted, usable, configs, against),
        spread,
    )


def _fit(
    base: Hardware, steps: Sequence[MeasuredStep], configs: Mapping[str, EngineConfig]
) -> tuple[NDArray[np.float64], dict[str, float]]:
    """What moves the base (`_moved`), and the standard error of each field's ln (Gauss–Newton)."""
    measured = np.log([step.step_time_s for step in steps])
    held = np.array([*SPREAD.values(), SPEED_SPREAD])

    def residuals(values: NDArray[np.float64]) -> NDArray[np.float64]:
        machine = _moved(base, values)
        foretold = np.log([step_seconds(machine, configs[step.profile], step) for step in steps])
        return np.concatenate([(foretold - measured) / NOISE, values / held])

    # Shapes are whole tokens and requests: a step small enough for the gradient, large enough to be seen.
    found = least_squares(residuals, np.zeros(len(held)), diff_step=np.full(len(held), 1e-3))
    jacobian = np.asarray(found.jac, dtype=np.float64)
    covariance = np.linalg.inv(jacobian.T @ jacobian)
    to_fields = np.hstack([np.eye(len(SPREAD)), np.array([[float(name in RATES)] for name in SPREAD])])
    errors = np.sqrt(np.diag(to_fields @ covariance @ to_fields.T))
    return found.x, dict(zip(SPREAD, map(float, errors), strict=True))


def step_seconds(hardware: Hardware, config: EngineConfig, step: MeasuredStep) -> float:
    """Seconds of the mean step: the cost model at the shape of each kind of step, by its share; and at one request the
    time between two of them, in which the engine has nothing to do."""
    model = CostModel(config, hardware)
    times = [(group, model.seconds(_shape(config, step, group))) for group in step.groups]
    mean = math.fsum(group.share * seconds for group, seconds in times)
    if not step.turnaround_s:
        return mean
    idle = (group.share * group.prompts * max(0.0, step.turnaround_s - seconds) for group, seconds in times)
    return mean + math.fsum(idle)


def _shape(config: EngineConfig, step: MeasuredStep, group: StepGroup) -> StepShape:
    speculates = config.method != "none"
    verified = step.batch * (1 + step.drafted)
    requests = max(1, round(step.batch + group.prompts))
    # n-gram drafts of unlike lengths leave the full graph; a model's drafts are all of length K.
    uniform = not speculates or step.drafted > 0.95 * config.k
    return StepShape(
        tokens=max(1, round(verified + group.prompt_tokens)),
        requests=requests,
        prefill_tokens=round(group.prompt_tokens),
        rows=max(1, round(verified + group.prompts)),
        context_tokens=round(requests * step.context),
        verified_context=round(step.batch * step.context * step.drafted),
        uniform_k=config.k if uniform and not group.prompts else -1,
        drafting=requests if speculates else 0,
        drafting_context=round(requests * step.context) if speculates else 0,
        draft_k=config.k,
    )


def _moved(base: Hardware, values: NDArray[np.float64]) -> Hardware:
    """The base with its fields moved; the last value moves both rates."""
    moves = dict(zip(SPREAD, map(float, values), strict=False))
    changes = {
        name: getattr(base, name) * math.exp(move + (float(values[-1]) if name in RATES else 0.0))
        for name, move in moves.items()
    }
    return dataclasses.replace(base, **changes)


def _with_api(
    machine: Hardware,
    api: ApiCost | None,
    steps: Sequence[MeasuredStep],
    configs: Mapping[str, EngineConfig],
    against: str,
) -> Hardware:
    """The machine with the API server as measured, and a request's way to the engine from the TTFT of one alone."""
    if api is not None:
        machine = dataclasses.replace(
            machine, api_chunk_s=api.chunk_s, api_token_s=api.token_s, api_request_s=api.request_s
        )
    alone = next((step for step in steps if step.profile == against and step.turnaround_s), None)
    if alone is None:
        return machine
    carrying = [group for group in alone.groups if group.prompts]
    if not carrying:
        return machine
    prefill = CostModel(configs[against], machine).seconds(_shape(configs[against], alone, carrying[0]))
    left = alone.turnaround_s - prefill - machine.api_request_s - machine.api_chunk_s
    return dataclasses.replace(machine, request_latency_s=max(0.0, left))


def _level_errors(
    base: Hardware,
    fitted: Hardware,
    steps: Sequence[MeasuredStep],
    configs: Mapping[str, EngineConfig],
    against: str,
) -> tuple[LevelError, ...]:
    found = []
    for level in sorted({step.level for step in steps}):
        others = [step for step in steps if step.level != level]
        here = [step for step in steps if step.level == level]
        plain = next((step for step in here if step.profile == against), None)
        if plain is None:
            continue
        enough = len(others) >= MIN_POINTS and len({step.profile for step in others}) >= 2
        without = _moved(base, _fit(base, others, configs)[0]) if enough else None
        for step in here:
            if step.profile == against:
                continue
            held_out = None if without is None else _ratio_error(without, plain, step, configs)
            found.append(LevelError(step.profile, level, _ratio_error(fitted, plain, step, configs), held_out))
    return tuple(found)


def _ratio_error(
    machine: Hardware, plain: MeasuredStep, step: MeasuredStep, configs: Mapping[str, EngineConfig]
) -> float:
    """Foretold over measured speed-up, less 1."""
    base, own = (step_seconds(machine, configs[one.profile], one) / one.step_time_s for one in (plain, step))
    return base / own - 1
