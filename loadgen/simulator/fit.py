"""A simulated machine fitted to the step times of a run."""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from loadgen.simulator.config import EngineConfig
from loadgen.simulator.cost import CostModel, StepShape
from loadgen.simulator.hardware import Hardware

FITTED = ("bandwidth", "flops", "full_graph_s", "host_step_s", "spec_step_s", "spec_request_s", "lookup_request_s")
"""What a run's step times can tell apart; the rest stays the base's: sizes of the model, memory, API server."""
MIN_POINTS = 6
LOOSE = 2.0
"""How far, in ln units, a fitted field may be from the base before the pull back weighs as much as a 10 % miss."""


@dataclass(frozen=True)
class MeasuredStep:
    """Mean engine step of one profile at one level."""

    profile: str
    level: int
    batch: float
    """Requests decoded per step."""
    drafted: float
    """Draft tokens per request and step."""
    prompt_tokens: float
    """Prompt tokens per step."""
    context: float
    """Mean tokens of context of a request."""
    tokens_per_step: float
    step_time_s: float


@dataclass(frozen=True)
class FittedHardware:
    """The machine, and how far it is off where it was fitted."""

    hardware: Hardware
    points: int
    step_error: float
    """Root mean square of the relative errors of the step times."""
    speedup_error: float | None
    """Largest relative error of a level's speed-up at equal batch and tokens per step; None without a pair."""


def fit_hardware(
    base: Hardware, steps: Sequence[MeasuredStep], configs: dict[str, EngineConfig], against: str, name: str
) -> FittedHardware:
    """The base with the fields that make its steps last as measured (least squares of ln step times, fields in ln,
    each held weakly to the base so that what the run cannot tell stays as it was).

    ValueError with fewer than six step times, or where they are all of one profile.
    """
    usable = [step for step in steps if step.step_time_s > 0 and step.batch > 0]
    if len(usable) < MIN_POINTS or len({step.profile for step in usable}) < 2:
        raise ValueError(f"{len(usable)} step times; a fit needs {MIN_POINTS} of two profiles")
    measured = np.log([step.step_time_s for step in usable])

    def residuals(values: NDArray[np.float64]) -> NDArray[np.float64]:
        machine = _moved(base, values)
        foretold = np.log([step_seconds(machine, configs[step.profile], step) for step in usable])
        return np.concatenate([(foretold - measured) / 0.1, values / LOOSE])

    found = least_squares(residuals, np.zeros(len(FITTED)))
    fitted = dataclasses.replace(_moved(base, found.x), name=name, description=f"{base.name} fitted to a run")
    errors = [step_seconds(fitted, configs[step.profile], step) / step.step_time_s - 1 for step in usable]
    return FittedHardware(
        fitted,
        len(usable),
        math.sqrt(math.fsum(error**2 for error in errors) / len(errors)),
        _speedup_error(fitted, usable, configs, against),
    )


def step_seconds(hardware: Hardware, config: EngineConfig, step: MeasuredStep) -> float:
    """Seconds of the mean step: the cost model at the mean shape, prompt tokens as compute on top."""
    speculates = config.method != "none"
    verified = step.batch * (1 + step.drafted)
    shape = StepShape(
        tokens=max(1, round(verified)),
        requests=max(1, round(step.batch)),
        prefill_tokens=0,
        rows=max(1, round(verified)),
        context_tokens=round(step.batch * step.context),
        verified_context=round(step.batch * step.context * step.drafted),
        # n-gram drafts of unlike lengths leave the full graph; a model's drafts are all of length K.
        uniform_k=config.k if not speculates or step.drafted > 0.95 * config.k else -1,
        drafting=round(step.batch) if speculates else 0,
        drafting_context=round(step.batch * step.context) if speculates else 0,
        draft_k=config.k,
    )
    return CostModel(config, hardware).seconds(shape) + step.prompt_tokens * 2 * hardware.parameters / hardware.flops


def _moved(base: Hardware, values: NDArray[np.float64]) -> Hardware:
    changes = {name: getattr(base, name) * math.exp(float(value)) for name, value in zip(FITTED, values, strict=True)}
    return dataclasses.replace(base, **changes)


def _speedup_error(
    fitted: Hardware, steps: Sequence[MeasuredStep], configs: dict[str, EngineConfig], against: str
) -> float | None:
    plain = {step.level: step for step in steps if step.profile == against}
    errors = []
    for step in steps:
        base = plain.get(step.level)
        if step.profile == against or base is None:
            continue
        foretold = step_seconds(fitted, configs[against], base) / step_seconds(fitted, configs[step.profile], step)
        errors.append(abs(foretold / (base.step_time_s / step.step_time_s) - 1))
    return max(errors) if errors else None
