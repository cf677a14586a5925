"""What loadgen shows Prometheus: the names of its metrics, and a summary as samples under them."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["gauge", "counter", "histogram"]


@dataclass(frozen=True)
class Exported:
    """One metric of loadgen."""

    name: str
    """Without the suffix that a counter or a histogram gets."""
    kind: Kind
    help: str

    @property
    def sample_names(self) -> tuple[str, ...]:
        """The names under which its values stand in a body."""
        if self.kind == "counter":
            return (f"{self.name}_total",)
        if self.kind == "histogram":
            return tuple(f"{self.name}{suffix}" for suffix in ("_bucket", "_sum", "_count"))
        return (self.name,)


EXPORTED: tuple[Exported, ...] = (
    Exported(
        "loadgen_run_info", "gauge", "A run: what was measured, on what; state started, interrupted or completed."
    ),
    Exported("loadgen_run_started_timestamp_seconds", "gauge", "When the run was made."),
    Exported("loadgen_run_newest", "gauge", "1 for the newest run."),
    Exported("loadgen_run_active", "gauge", "1 while the run is being measured."),
    Exported("loadgen_run_cells_planned", "gauge", "Cells of the whole run."),
    Exported("loadgen_run_cells_measured", "gauge", "Cells that stand in the run folder."),
    Exported("loadgen_run_cells_failed", "gauge", "Cells that could not be measured."),
    Exported("loadgen_current_concurrency", "gauge", "Level of the cell that is being measured."),
    Exported("loadgen_cell_started_timestamp_seconds", "gauge", "When a cell began, warm-up included."),
    Exported("loadgen_speedup", "gauge", "Output tokens/s, profile / baseline."),
    Exported("loadgen_speedup_low", "gauge", "Lower end of the speed-up's 95 % interval."),
    Exported("loadgen_speedup_high", "gauge", "Upper end of the speed-up's 95 % interval."),
    Exported("loadgen_tpot_speedup", "gauge", "Mean TPOT, baseline / profile: above 1 is faster per user."),
    Exported("loadgen_output_tokens_per_second", "gauge", "Output tokens/s at a level."),
    Exported("loadgen_ttft_p50_seconds", "gauge", "Median time to first token at a level."),
    Exported("loadgen_tpot_p50_seconds", "gauge", "Median time per output token at a level."),
    Exported("loadgen_acceptance_ratio", "gauge", "Accepted / drafted tokens at a level."),
    Exported("loadgen_mean_acceptance_length", "gauge", "1 + accepted / drafts at a level."),
    Exported("loadgen_tokens_per_step", "gauge", "Tokens per decode request-step, undrafted steps included."),
    Exported("loadgen_step_time_ratio", "gauge", "Engine step time, profile / baseline."),
    Exported("loadgen_batch", "gauge", "Requests decoded per engine step at a level."),
    Exported("loadgen_level_valid", "gauge", "1 if the level may carry a verdict."),
    Exported("loadgen_check", "gauge", "1 for a trust check that fires at a level."),
    Exported("loadgen_break_even_concurrency", "gauge", "Requests in flight at which the speed-up passes 1."),
    Exported("loadgen_break_even_concurrency_low", "gauge", "Lower end of the break-even's 95 % interval."),
    Exported("loadgen_break_even_concurrency_high", "gauge", "Upper end of the break-even's 95 % interval."),
    Exported("loadgen_break_even_status", "gauge", "1 for found, pays_throughout, never_pays or inconclusive."),
    Exported("loadgen_costs_above_concurrency", "gauge", "Load above which speculation surely costs; +Inf if never."),
    Exported("loadgen_schedule_tokens", "gauge", "Advised speculative tokens per request at a batch size."),
    Exported("loadgen_schedule_edge", "gauge", "First batch size of each range of the advised schedule but the first."),
    Exported("loadgen_client_loop_lag_p99_seconds", "gauge", "Event-loop lag of the client, worst cell of a level."),
    Exported("loadgen_client_cpu_cores", "gauge", "CPU use of the client, worst cell of a level."),
    Exported("loadgen_client_in_flight", "gauge", "Mean requests in flight, lowest cell of a level."),
    Exported("loadgen_client_coalesced_ratio", "gauge", "Token events that came in one read with the one before."),
    Exported("loadgen_client_lockstep", "gauge", "0: request ends are spread evenly; 1: all end together."),
    Exported("loadgen_stolen_cpu_ratio", "gauge", "CPU time that the hypervisor gave to others, worst cell."),
    Exported("loadgen_requests", "counter", "Requests of the newest run that have ended."),
    Exported("loadgen_output_tokens", "counter", "Output tokens of the newest run's requests."),
    Exported("loadgen_ttft_seconds", "histogram", "Time to first token as the client saw it."),
    Exported("loadgen_tpot_seconds", "histogram", "Time per output token of a request as the client saw it."),
    Exported("loadgen_e2e_seconds", "histogram", "Time to the last token as the client saw it."),
)

_LEVEL_GAUGES = {
    "loadgen_speedup": "speedup",
    "loadgen_tpot_speedup": "tpot_speedup",
    "loadgen_output_tokens_per_second": "tokens_per_s",
    "loadgen_ttft_p50_seconds": "ttft_p50_s",
    "loadgen_tpot_p50_seconds": "tpot_p50_s",
    "loadgen_acceptance_ratio": "acceptance_rate",
    "loadgen_mean_acceptance_length": "mean_acceptance_length",
    "loadgen_tokens_per_step": "tokens_per_step",
    "loadgen_step_time_ratio": "step_time_ratio",
    "loadgen_batch": "batch",
    "loadgen_level_valid": "valid",
}
_BASELINE_GAUGES = {
    "loadgen_output_tokens_per_second": "baseline_tokens_per_s",
    "loadgen_ttft_p50_seconds": "baseline_ttft_p50_s",
    "loadgen_tpot_p50_seconds": "baseline_tpot_p50_s",
    "loadgen_batch": "baseline_batch",
}


@dataclass(frozen=True)
class Shown:
    """One sample."""

    name: str
    labels: Mapping[str, str]
    value: float


def exported_sample_names() -> frozenset[str]:
    """Every sample name of loadgen, for checks of dashboards and alerts."""
    return frozenset(name for metric in EXPORTED for name in metric.sample_names)


def shown_findings(summary: Mapping[str, Any]) -> list[Shown]:
    """The samples of a summary.json (schema 1): what is null there has none."""
    found: list[Shown] = []
    workloads = [condition["workload"] for condition in summary["conditions"]]
    for condition in summary["conditions"]:
        where = {
            "condition": _short(condition, alone=workloads.count(condition["workload"]) == 1),
            "run": str(summary["run_id"]),
            "workload": str(condition["workload"]),
            "input_tokens": str(condition["input_tokens"]),
            "temperature": f"{condition['temperature']:g}",
        }
        baseline: dict[tuple[str, str], Shown] = {}
        for name, profile in condition["profiles"].items():
            labels = {**where, "profile": name}
            for level in profile["levels"]:
                found += _level(labels, level)
                beside = {**where, "profile": str(summary["against"]), "concurrency": str(level["concurrency"])}
                for shown in _gauges(beside, level, _BASELINE_GAUGES):
                    baseline.setdefault((shown.name, shown.labels["concurrency"]), shown)
            for measure, verdict in profile["break_even"].items():
                found += _break_even({**labels, "measure": measure}, verdict)
        found += baseline.values()
    return [*found, *_schedule(str(summary["run_id"]), summary.get("recommendation"))]


def _short(condition: Mapping[str, Any], *, alone: bool) -> str:
    """The condition's name in a legend: the workload, and what tells it from others of the same workload."""
    if alone:
        return str(condition["workload"])
    return f"{condition['workload']}, {condition['input_tokens']} tokens, T {condition['temperature']:g}"


def _gauges(labels: Mapping[str, str], values: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[Shown]:
    for name, key in names.items():
        if values.get(key) is not None:
            yield Shown(name, labels, float(values[key]))


def _level(labels: Mapping[str, str], level: Mapping[str, Any]) -> Iterator[Shown]:
    here = {**labels, "concurrency": str(level["concurrency"])}
    yield from _gauges(here, level, _LEVEL_GAUGES)
    if level["ci95"] is not None:
        low, high = level["ci95"]
        yield from _gauges(here, {"l": low, "h": high}, {"loadgen_speedup_low": "l", "loadgen_speedup_high": "h"})
    for name in dict.fromkeys((check["name"], check["voids"]) for check in level["checks"]):
        yield Shown("loadgen_check", {**here, "check": str(name[0]), "voids": str(name[1]).lower()}, 1.0)


def _break_even(labels: Mapping[str, str], verdict: Mapping[str, Any]) -> Iterator[Shown]:
    yield Shown("loadgen_break_even_status", {**labels, "status": str(verdict["status"])}, 1.0)
    for index, crossing in enumerate(verdict["crossings"]):
        here = {**labels, "crossing": str(index), "direction": str(crossing["direction"])}
        yield Shown("loadgen_break_even_concurrency", here, float(crossing["concurrency"]))
        low, high = crossing["ci95"]
        keys = {"loadgen_break_even_concurrency_low": "l", "loadgen_break_even_concurrency_high": "h"}
        yield from _gauges(here, {"l": low, "h": high}, keys)
    above = _costs_above(verdict)
    if above is not None:
        yield Shown("loadgen_costs_above_concurrency", labels, above)


def _costs_above(verdict: Mapping[str, Any]) -> float | None:
    """Upper end of the last turn downwards; 0 if speculation never pays, +inf if it pays throughout, else None."""
    if verdict["status"] == "never_pays":
        return 0.0
    if verdict["status"] == "pays_throughout":
        return math.inf
    crossings = verdict["crossings"]
    if verdict["status"] != "found" or crossings[-1]["direction"] != "down":
        return None
    high = crossings[-1]["ci95"][1]
    return None if high is None else float(high)


def _schedule(run: str, recommendation: Mapping[str, Any] | None) -> Iterator[Shown]:
    """The advised schedule as K at each power of two and at the edges, so that a chart draws its steps."""
    value = recommendation["value"] if recommendation else None
    ranges = value.get("edges") if isinstance(value, Mapping) else value
    if not isinstance(ranges, list | tuple) or not ranges:
        return
    for first, last, k in ranges:
        sizes = {first, last, *(2**n for n in range(12) if first <= 2**n <= last)}
        for size in sorted(sizes):
            yield Shown("loadgen_schedule_tokens", {"run": run, "concurrency": str(size)}, float(k))
    for index, (first, _, k) in enumerate(ranges[1:], start=1):
        labels = {"run": run, "range": str(index), "num_speculative_tokens": str(k)}
        yield Shown("loadgen_schedule_edge", labels, float(first))
