"""plan.json: a plan as plain data with a published JSON Schema."""

import json
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from loadgen.analysis.capacity_certain import is_resolved
from loadgen.analysis.capacity_model import (
    Capacity,
    Ceiling,
    LevelVerdict,
    Offer,
    OpenVerdict,
    OperatingPoint,
    Plan,
    SloFinding,
)
from loadgen.report.summary import dumps, plain
from loadgen.store.model import Condition

SCHEMA = 1


def plan_schema() -> dict[str, Any]:
    """The published JSON Schema of plan.json."""
    text = files("loadgen.report").joinpath("plan.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def plan_json(plan: Plan) -> str:
    """plan.json's text; every number is finite or null (null for a quantile that failures push to infinity)."""
    return dumps(plan_data(plan)) + "\n"


def plan_data(plan: Plan) -> dict[str, Any]:
    """What plan.json holds (schema 1)."""
    whole = {
        "schema": SCHEMA,
        "run_id": plan.run_id,
        "simulated": plan.simulated,
        "model": plan.model,
        "vllm_version": plan.vllm_version,
        "answer": plan.answer,
        "resolved": is_resolved(plan),
        "slos": [{"name": slo.name, **asdict(slo)} for slo in plan.slos],
        "demand": {**asdict(plan.demand), "shares": dict(plan.demand.shares)} if plan.demand else None,
        "hardware": asdict(plan.hardware),
        "offers": [_offer(offer) for offer in plan.offers],
        "advice": [
            {**_condition(a.condition), "setting": a.setting, "reason": a.reason, "sure": a.sure, "doubt": a.doubt}
            for a in plan.advice
        ],
        "mix": asdict(plan.mix) if plan.mix else None,
        "notes": plan.notes,
    }
    data: dict[str, Any] = plain(whole)
    return data


def _offer(offer: Offer) -> dict[str, Any]:
    return {
        **_condition(offer.condition),
        "setting": offer.setting,
        "detail": offer.detail,
        "levels": [_level(level) for level in offer.levels],
        "ceiling": _ceiling(offer.ceiling),
        "open_loop": [_open(one) for one in offer.opened],
        "capacity": _capacity(offer.capacity),
        "fleet": asdict(offer.fleet) if offer.fleet else None,
        "acceptance_a_third_lower": {
            "tokens_per_step_factor": offer.weaker.tokens_per_step_factor,
            "ceiling": _ceiling(offer.weaker.ceiling),
            "capacity": _capacity(offer.weaker.capacity),
            "fleet": asdict(offer.weaker.fleet) if offer.weaker.fleet else None,
        }
        if offer.weaker
        else None,
    }


def _condition(condition: Condition) -> dict[str, Any]:
    return {
        "workload": condition.workload,
        "input_tokens": condition.input_tokens,
        "temperature": condition.temperature,
    }


def _level(level: LevelVerdict) -> dict[str, Any]:
    return {
        "concurrency": level.level,
        "requests_per_s": level.requests_per_s,
        "tokens_per_s": level.tokens_per_s,
        "goodput_per_s": level.goodput_per_s,
        "good_share": level.good_share,
        "measured_on": level.source,
        "verdict": level.verdict.value,
        "slos": [_finding(finding) for finding in level.findings],
    }


def _open(one: OpenVerdict) -> dict[str, Any]:
    return {
        "rate_per_s": one.rate_per_s,
        "requests_per_s": one.requests_per_s,
        "in_flight": one.in_flight,
        "goodput_per_s": one.goodput_per_s,
        "verdict": one.verdict.value,
        "slos": [_finding(finding) for finding in one.findings],
    }


def _finding(finding: SloFinding) -> dict[str, Any]:
    estimate = finding.estimate
    return {
        "name": finding.slo.name,
        "value_s": estimate.value,
        "ci95_s": [estimate.low, estimate.high],
        "n": estimate.n,
        "n_needed": estimate.needed,
        "verdict": finding.verdict.value,
    }


def _ceiling(ceiling: Ceiling) -> dict[str, Any]:
    return {**asdict(ceiling), "open_ended": ceiling.open_ended}


def _capacity(capacity: Capacity | None) -> dict[str, Any] | None:
    if capacity is None:
        return None
    return {
        "per_server": capacity.per_server,
        "unit": capacity.unit,
        "basis": capacity.basis,
        "limited_by": capacity.limited_by,
        "surely": capacity.surely,
        "at_most": capacity.at_most,
        "at": _operating(capacity.at) if capacity.at else None,
    }


def _operating(at: OperatingPoint) -> dict[str, Any]:
    return {
        "rate_per_s": at.rate_per_s,
        "users": at.users,
        "in_flight": at.in_flight,
        "tokens_per_s": at.tokens_per_s,
        "beyond_share": at.beyond_share,
        "slos": [_finding(finding) for finding in at.quantiles],
    }
