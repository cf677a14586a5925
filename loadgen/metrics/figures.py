"""Every figure that a counter delta gives, with its formula: for people and for scripts."""

import math
from dataclasses import dataclass

from loadgen.metrics.histogram import quantile
from loadgen.metrics.model import CounterDelta, HistogramDelta

QUANTILES = (0.5, 0.9, 0.99)


@dataclass(frozen=True)
class Figure:
    """One figure; `value` None is "not available", never 0."""

    name: str
    value: float | None
    unit: str
    formula: str


def figures(delta: CounterDelta) -> tuple[Figure, ...]:
    """Counts first, then what follows from them; the formulas name vLLM's metrics without their prefix."""
    d = delta
    rows = (
        ("generation_tokens", d.generation_tokens, "tokens", "Δgeneration_tokens_total"),
        ("prompt_tokens", d.prompt_tokens, "tokens", "Δprompt_tokens_total"),
        ("output_tokens_per_s", _per_s(d.generation_tokens, d.duration_s), "tokens/s", "Δgeneration_tokens / seconds"),
        ("drafts", d.drafts, "", "Δspec_decode_num_drafts_total"),
        ("draft_tokens", d.draft_tokens, "tokens", "Δspec_decode_num_draft_tokens_total"),
        ("accepted_tokens", d.accepted_tokens, "tokens", "Δspec_decode_num_accepted_tokens_total"),
        ("acceptance_rate", d.acceptance_rate, "", "Δaccepted_tokens / Δdraft_tokens"),
        (
            "mean_acceptance_length",
            d.mean_acceptance_length,
            "tokens",
            "1 + Δaccepted_tokens / Δdrafts (bonus token in)",
        ),
        ("tokens_per_step", d.tokens_per_step, "tokens", "(Δgeneration_tokens − ΔTTFT count) / ΔITL count"),
        ("draft_coverage", d.draft_coverage, "", "Δdrafts / ΔITL count"),
        ("request_steps", d.request_steps, "", "Δinter_token_latency_seconds_count"),
        ("decode_batch", d.decode_batch, "requests", "ΔITL count / Δiteration_tokens_total_count"),
        ("steps_per_s", d.steps_per_s, "1/s", "Δiteration_tokens_total_count / seconds"),
        ("prefix_cache_hit_rate", d.prefix_cache_hit_rate, "", "Δprefix_cache_hits / Δprefix_cache_queries"),
        ("preemptions", d.preemptions, "", "Δnum_preemptions_total"),
        ("process_cpu_s", d.process_cpu_s, "s", "Δprocess_cpu_seconds_total (API server)"),
    )
    return tuple(Figure(*row) for row in rows)


def histograms(delta: CounterDelta) -> tuple[tuple[str, HistogramDelta | None, str], ...]:
    """(name, histogram, unit) of every histogram that is read."""
    return (
        ("time_to_first_token", delta.time_to_first_token, "s"),
        ("inter_token_latency", delta.inter_token_latency, "s"),
        ("time_per_output_token", delta.time_per_output_token, "s"),
        ("e2e_latency", delta.e2e_latency, "s"),
        ("queue_time", delta.queue_time, "s"),
        ("iteration_tokens", delta.iteration_tokens, "tokens"),
    )


def describe(delta: CounterDelta) -> list[str]:
    """The lines that a person reads: each figure with its formula, `n/a` where the server does not tell."""
    lines = [_line(figure) for figure in figures(delta)]
    if delta.acceptance_per_position:
        shares = "  ".join(f"{index}: {share:.3f}" for index, share in enumerate(delta.acceptance_per_position))
        lines.append(f"{'acceptance_per_position':24}{shares}   = Δaccepted_tokens_per_pos / Δdrafts")
    elif delta.drafts == 0:
        lines.append(f"{'acceptance_per_position':24}n/a: no drafts proposed")
    for reason, count in delta.requests_finished.items():
        lines.append(f"{f'requests {reason}':24}{count:g}   = Δrequest_success_total")
    for name, histogram, unit in histograms(delta):
        lines.append(f"{name:24}{_histogram_text(histogram, unit)}")
    return [*lines, *(f"warning: {warning}" for warning in delta.warnings)]


def as_json(delta: CounterDelta) -> dict[str, object]:
    """The same for a script; what is not available or not finite is None."""
    return {
        "duration_s": delta.duration_s or None,
        "reset_detected": delta.reset_detected,
        "figures": {f.name: {"value": f.value, "unit": f.unit, "formula": f.formula} for f in figures(delta)},
        "acceptance_per_position": list(delta.acceptance_per_position),
        "requests_finished": delta.requests_finished,
        "histograms": {name: _histogram_json(histogram) for name, histogram, _ in histograms(delta)},
        "warnings": list(delta.warnings),
    }


def _per_s(count: float | None, seconds: float) -> float | None:
    return None if count is None or seconds <= 0 else count / seconds


def _line(figure: Figure) -> str:
    value = "n/a" if figure.value is None else f"{figure.value:.6g}"
    unit = f" {figure.unit}" if figure.unit and figure.value is not None else ""
    return f"{figure.name:24}{value}{unit}   = {figure.formula}"


def _histogram_text(histogram: HistogramDelta | None, unit: str) -> str:
    if histogram is None:
        return "n/a"
    if histogram.mean is None:
        return "n/a: no observations"
    parts = [f"n {histogram.count:g}", f"mean {histogram.mean:.4g} {unit}"]
    for q in QUANTILES:
        found = quantile(histogram.buckets, q)
        if found is not None:
            parts.append(f"p{q * 100:g} {found.text(unit=unit)}")
    return ", ".join(parts)


def _histogram_json(histogram: HistogramDelta | None) -> dict[str, object] | None:
    if histogram is None:
        return None
    found = {f"p{q * 100:g}": quantile(histogram.buckets, q) for q in QUANTILES}
    return {
        "count": histogram.count,
        "sum": histogram.sum,
        "mean": histogram.mean,
        "quantile_estimates": {
            name: None if e is None else {"value": e.value, "lower": e.lower, "upper": _finite(e.upper)}
            for name, e in found.items()
        },
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
