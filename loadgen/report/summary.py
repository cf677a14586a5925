"""summary.json: the findings as plain data that any JSON parser reads."""

import json
import math
from dataclasses import asdict
from importlib.resources import files
from typing import Any

import numpy as np

from loadgen.analysis.diagnostic import DiagnosticFinding
from loadgen.analysis.model import (
    BreakEven,
    Check,
    Estimate,
    Findings,
    LevelFinding,
    ProfileFinding,
    Recommendation,
)
from loadgen.analysis.schedule_ladder import LadderFinding
from loadgen.store.model import Manifest

SCHEMA = 1


def plain(value: object) -> Any:
    """The value as JSON types only: non-finite numbers are None, tuples are lists, other objects their text (C36)."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        return {_text(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int)) else _text(value)


def _text(value: object) -> str:
    """The value's text; a lone surrogate from a server's text becomes `?`, as UTF-8 cannot hold it."""
    return str(value).encode("utf-8", "replace").decode("utf-8")


def dumps(value: object, indent: int | None = 2) -> str:
    """JSON text of the value; never NaN or Infinity, whatever is in it (C36); compact on one line without an indent."""
    separators = (",", ":") if indent is None else None
    return json.dumps(plain(value), indent=indent, separators=separators, ensure_ascii=False, allow_nan=False)


def json_schema() -> dict[str, Any]:
    """The published JSON Schema of summary.json."""
    text = files("loadgen.report").joinpath("summary.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def summary(findings: Findings, manifest: Manifest) -> dict[str, Any]:
    """What summary.json holds (schema 1); every number is finite or None."""
    whole = {
        "schema": SCHEMA,
        "engine": findings.engine,
        "simulated": findings.simulated,
        "interrupted": findings.interrupted,
        "vllm_version": findings.vllm_version,
        "run_id": findings.run_id,
        "model": findings.model,
        "against": findings.against,
        "answer": findings.answer,
        "conditions": [
            {
                "workload": c.condition.workload,
                "input_tokens": c.condition.input_tokens,
                "temperature": c.condition.temperature,
                "profiles": {p.profile: _profile(p) for p in c.profiles},
            }
            for c in findings.conditions
        ],
        "recommendation": _recommendation(findings.recommendation),
        "ladders": [_ladder(one) for one in findings.ladders],
        "verification": asdict(findings.verification) if findings.verification else None,
        "diagnostics": [_diagnostic(one) for one in findings.diagnostics],
        "checks": [_check(check) for check in findings.checks],
        "notes": list(findings.notes),
        "measured": _measured(manifest),
    }
    result: dict[str, Any] = plain(whole)
    return result


def _profile(profile: ProfileFinding) -> dict[str, Any]:
    """One profile under one condition."""
    return {
        "method": profile.method,
        "levels": [_level(level) for level in profile.levels],
        "break_even": {measure: _break_even(found) for measure, found in profile.break_even.items()},
    }


def _level(level: LevelFinding) -> dict[str, Any]:
    """One level: the ratio and its interval, the figures that explain it, the checks."""
    return {
        "concurrency": level.concurrency,
        "batch": level.batch,
        "baseline_batch": level.baseline_batch,
        "n": level.n,
        "valid": level.valid,
        **_estimate("baseline_tokens_per_s", level.baseline_tokens_per_s),
        **_estimate("tokens_per_s", level.tokens_per_s),
        "speedup": level.speedup.value if level.speedup else None,
        "ci95": level.speedup.ci95 if level.speedup else None,
        **_estimate("tpot_speedup", level.tpot_speedup),
        **_estimate("e2e_speedup", level.e2e_speedup),
        **_estimate("ttft_ratio", level.ttft_ratio),
        "acceptance_rate": level.acceptance_rate,
        "mean_acceptance_length": level.mean_acceptance_length,
        "acceptance_per_position": level.acceptance_per_position,
        "tokens_per_step": level.tokens_per_step,
        "draft_coverage": level.draft_coverage,
        "step_time_ratio": level.step_time_ratio,
        "drafts": level.drafts,
        "draft_tokens": level.draft_tokens,
        "accepted_tokens": level.accepted_tokens,
        "ttft_p50_s": level.ttft_p50_s,
        "tpot_p50_s": level.tpot_p50_s,
        "e2e_p50_s": level.e2e_p50_s,
        "baseline_ttft_p50_s": level.baseline_ttft_p50_s,
        "baseline_tpot_p50_s": level.baseline_tpot_p50_s,
        "voided_cells": level.voided_cells,
        "voided_baseline_cells": level.voided_baseline_cells,
        "explanation": asdict(level.explanation) if level.explanation else None,
        "checks": [_check(check) for check in level.checks],
    }


def _estimate(name: str, estimate: Estimate | None) -> dict[str, Any]:
    """`name` and `name_ci95`; both None where nothing was estimated."""
    return {
        name: estimate.value if estimate else None,
        f"{name}_ci95": estimate.ci95 if estimate else None,
    }


def _break_even(found: BreakEven) -> dict[str, Any]:
    """One break-even with its crossings."""
    return {
        "status": found.status.value,
        "crossings": [asdict(crossing) for crossing in found.crossings],
        "sentence": found.sentence,
        "indicative": found.indicative,
        "tested_levels": found.tested_levels,
        "sure_gains": found.sure_gains,
        "sure_losses": found.sure_losses,
    }


def _recommendation(found: Recommendation | None) -> dict[str, Any] | None:
    """The recommendation, None if there is none."""
    return asdict(found) if found else None


def _ladder(found: LadderFinding) -> dict[str, Any]:
    """Which profile is which K, and the schedule from them."""
    schedule = found.schedule
    return {
        "workload": found.condition.workload,
        "input_tokens": found.condition.input_tokens,
        "temperature": found.condition.temperature,
        "of": found.of,
        "method": found.method,
        "objective": found.objective,
        "limits_s": {one.name: one.limit_s for one in found.slo.slos} if found.slo else {},
        "no_setting_keeps_limits_at": schedule.unmet,
        "costs_measured": found.costs_measured,
        "arms": {name: asdict(arm) for name, arm in found.arms.items()},
        "best_k_by_requests_in_flight": found.by_static.in_flight,
        "choice": schedule.choice.value,
        "static_k": schedule.static_k,
        "schedule": schedule.ranges,
        "schedule_by_requests_in_flight": schedule.in_flight,
        "pools_by_requests_in_flight": schedule.pools_in_flight,
        "levels": [asdict(level) for level in schedule.levels],
    }


def _diagnostic(found: DiagnosticFinding) -> dict[str, Any]:
    """Tokens per chunk of one profile under one condition, and what usage in every chunk costs."""
    values = asdict(found)
    return {**values.pop("condition"), **values, "throughput_ratio": found.throughput_ratio}


def _check(check: Check) -> dict[str, Any]:
    """One check with its cause and cure."""
    return asdict(check)


def _measured(manifest: Manifest) -> dict[str, Any]:
    """How the run was made: enough to repeat it."""
    return {
        "created_at": manifest.created_at,
        "loadgen_version": manifest.loadgen_version,
        "argv": manifest.argv,
        "engine_reason": manifest.engine_reason,
        "profiles": manifest.profiles,
        "num_speculative_tokens": manifest.num_speculative_tokens,
        "levels": manifest.levels,
        "repeats": manifest.repeats,
        "sessions": manifest.sessions,
        "seed": manifest.seed,
        "quick": manifest.quick,
        "order": manifest.order,
        "sampling": manifest.sampling,
        "hardware": manifest.hardware,
    }
