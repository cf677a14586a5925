"""A run's engine steps and API server, as the fit of a simulated machine needs them."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from loadgen.analysis.acceptance import first_tokens, pool, step_time_s
from loadgen.analysis.steps import DECODE_ONLY, StepGroup, step_groups
from loadgen.store.model import CellResult

MIN_CPU_CELLS = 12
"""Five coefficients of the API server's CPU time: fewer cells tell them badly."""


@dataclass(frozen=True)
class MeasuredStep:
    """Mean engine step of one profile at one level."""

    profile: str
    level: int
    batch: float
    """Requests decoded per step."""
    drafted: float
    """Draft tokens per request and step."""
    context: float
    """Mean tokens of context of a request."""
    tokens_per_step: float
    step_time_s: float
    groups: tuple[StepGroup, ...] = DECODE_ONLY
    turnaround_s: float = 0.0
    """Mean TTFT where one request runs alone (level 1), for the engine idles in part of it; else 0."""
    cells: int = 1


@dataclass(frozen=True)
class ApiCost:
    """CPU seconds of the API server process, by what it does."""

    chunk_s: float
    token_s: float
    request_s: float
    cells: int
    rms_error: float
    """Root mean square of the relative errors of the cells' CPU times."""


def measured_steps(cells: Iterable[CellResult]) -> tuple[MeasuredStep, ...]:
    """One mean step per profile and level, the counters of all its cells added first; by profile, then level."""
    by_place: dict[tuple[str, int], list[CellResult]] = defaultdict(list)
    for cell in cells:
        if cell.window is not None:
            by_place[(cell.key.profile, cell.key.level)].append(cell)
    found = (_step(profile, level, group) for (profile, level), group in sorted(by_place.items()))
    return tuple(step for step in found if step is not None)


def _step(profile: str, level: int, cells: Sequence[CellResult]) -> MeasuredStep | None:
    delta = pool(cell.window for cell in cells)
    seconds = step_time_s(delta)
    prompts = [cell.prompt_tokens.mean for cell in cells if cell.prompt_tokens.mean is not None]
    outputs = [cell.output_tokens.mean for cell in cells if cell.output_tokens.mean is not None]
    waits = [cell.ttft_s.mean for cell in cells if cell.ttft_s.mean is not None]
    if delta is None or not seconds or not delta.decode_batch or not delta.inter_token_latency or not prompts:
        return None
    return MeasuredStep(
        profile,
        level,
        batch=delta.decode_batch,
        drafted=(delta.draft_tokens or 0.0) / max(delta.inter_token_latency.count, 1.0),
        context=math.fsum(prompts) / len(prompts) + (math.fsum(outputs) / len(outputs) / 2 if outputs else 0.0),
        tokens_per_step=delta.tokens_per_step or 1.0,
        step_time_s=seconds,
        groups=step_groups((cell.window for cell in cells if cell.window is not None), level),
        turnaround_s=math.fsum(waits) / len(waits) if waits and level == 1 else 0.0,
        cells=len(cells),
    )


def api_cost(cells: Iterable[CellResult]) -> ApiCost | None:
    """What the API server's CPU time went to, by non-negative least squares of relative errors over the cells.

    Its other two parts, per second (scrapes) and per engine step (wake-ups), are taken off and not given. None below
    twelve cells with a CPU time, or where chunks or requests cost nothing by it.
    """
    rows, times = [], []
    for cell in cells:
        delta = cell.window
        if delta is None or not delta.process_cpu_s or delta.inter_token_latency is None or not delta.iteration_tokens:
            continue
        firsts = first_tokens(delta)
        chunks = delta.inter_token_latency.count + firsts
        rows.append([chunks, delta.generation_tokens or 0.0, firsts, delta.iteration_tokens.count, delta.duration_s])
        times.append(delta.process_cpu_s)
    if len(times) < MIN_CPU_CELLS:
        return None
    made = np.array(rows) / np.array(times)[:, None]
    (chunk, token, request, _, _), residual = nnls(made, np.ones(len(times)))
    if chunk <= 0 or request <= 0:
        return None
    return ApiCost(float(chunk), float(token), float(request), len(times), float(residual) / math.sqrt(len(times)))
