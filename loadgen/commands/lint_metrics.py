"""Faults in one PromQL expression, wherever it stands: dashboard, rule or alert."""

import re
from collections.abc import Collection, Iterator

from loadgen.commands.lint_finding import Finding
from loadgen.commands.lint_promql import aggregations, has_top_level, metric_names, plain, ranges
from loadgen.metrics.names import FAMILIES, known_sample_names
from loadgen.report.exported import exported_sample_names

RENAMED = {
    "vllm:gpu_cache_usage_perc": "vllm:kv_cache_usage_perc",
    "vllm:gpu_prefix_cache_hits_total": "vllm:prefix_cache_hits_total",
    "vllm:gpu_prefix_cache_queries_total": "vllm:prefix_cache_queries_total",
    "vllm:spec_decode_draft_acceptance_rate": "the rates of vllm:spec_decode_num_accepted_tokens_total and "
    "..._num_draft_tokens_total",
    "vllm:avg_generation_throughput_toks_per_s": "rate(vllm:generation_tokens_total[$__rate_interval])",
    "vllm:avg_prompt_throughput_toks_per_s": "rate(vllm:prompt_tokens_total[$__rate_interval])",
    "vllm:time_in_queue_requests": "vllm:request_queue_time_seconds",
    "vllm:num_requests_swapped": "vllm:num_preemptions_total",
}
_PER_TOKEN = "vllm:time_per_output_token_seconds"
_RATIO = re.compile(r"(?:_perc|_percent|_percentage|_ratio|_utilization|_usage)$|:ratio|^loadgen_(?:tpot_)?speedup")
RELEASE = (0, 32)


def lint_expression(expr: str, where: str, *, in_dashboard: bool, recorded: Collection[str] = ()) -> Iterator[Finding]:
    """The expression's faults. `recorded`: names that recording rules make."""
    yield from _names(expr, where, recorded)
    yield from _ratios(expr, where)
    yield from _quantiles(expr, where)
    if in_dashboard:
        yield from _ranges(expr, where)


def _names(expr: str, where: str, recorded: Collection[str]) -> Iterator[Finding]:
    known = known_sample_names(RELEASE)
    older = known_sample_names()
    for name in sorted(metric_names(expr)):
        if not name.startswith(("vllm:", "vllm_", "loadgen_", "loadgen:")) or name in recorded:
            continue
        if name in known or name in exported_sample_names() or name.removesuffix("_created") != name:
            continue
        release = ".".join(map(str, RELEASE))
        what = f"{name} is no metric of vLLM {release}" if name.startswith("vllm") else f"loadgen shows no {name}"
        if name in older:
            until = next(f.until for f in FAMILIES if name in f.sample_names)
            what += f" (gone since {until[0]}.{until[1]})" if until else ""
        yield Finding("unknown-metric", where, what, _instead(name))


def _instead(name: str) -> str:
    if name.startswith(_PER_TOKEN):
        rest = name.removeprefix(_PER_TOKEN)
        return f"use vllm:request_time_per_output_token_seconds{rest} (vllm:inter_token_latency_seconds is per chunk)"
    if name in RENAMED:
        return f"use {RENAMED[name]}"
    if f"{name}_total" in known_sample_names(RELEASE):
        return f"counters end in _total: {name}_total"
    if f"{name}_bucket" in known_sample_names(RELEASE):
        return f"it is a histogram: use {name}_sum, {name}_count or {name}_bucket"
    return "take a name from the server's /metrics"


def _ratios(expr: str, where: str) -> Iterator[Finding]:
    for found in aggregations(expr):
        if found.operator not in ("sum", "avg"):
            continue
        inside = found.inside.strip()
        bare = re.sub(r"\{[^{}]*\}", "", inside).strip()
        if found.operator == "sum" and _RATIO.search(bare) and re.fullmatch(r"[\w:]+", bare):
            yield Finding("summed-ratio", where, f"sum({bare}) adds up ratios", "use max by (instance), or avg")
        elif has_top_level(inside, "/"):
            what = f"{found.operator}(a / b) treats an idle series like a busy one"
            yield Finding("summed-ratio", where, what, "divide the sums: sum(a) / sum(b)")


def _quantiles(expr: str, where: str) -> Iterator[Finding]:
    text = plain(expr)
    for found in aggregations(expr):
        if found.operator in ("sum", "avg") and "histogram_quantile" in found.inside:
            what = f"{found.operator} of histogram_quantile: quantiles cannot be added or averaged"
            yield Finding(
                "averaged-quantile", where, what, "add up the buckets: histogram_quantile(q, sum by (le) (…))"
            )
        elif found.operator in ("sum", "avg") and re.search(r"\{[^{}]*\bquantile\s*=", found.inside):
            what = f"{found.operator} of a summary's quantiles: they cannot be added or averaged"
            yield Finding("averaged-quantile", where, what, "show each server's own, or use a histogram")
        elif _drops_le(found.operator, found.labels, found.inside) and "histogram_quantile" in text:
            what = "histogram_quantile needs the label le, and sum by (…) drops it"
            yield Finding("quantile-without-le", where, what, "write sum by (le, …)")


def _drops_le(operator: str, labels: Collection[str] | None, inside: str) -> bool:
    return operator == "sum" and "_bucket" in inside and labels is not None and "le" not in labels


def _ranges(expr: str, where: str) -> Iterator[Finding]:
    for function, span in ranges(expr):
        if not function.endswith(("rate", "increase")):
            continue
        if re.search(r"\$\{?__interval", span):
            what = f"{function}(…[{span}]) has no point where the interval is shorter than two scrapes"
            yield Finding("interval-in-rate", where, what, "use $__rate_interval")
        elif re.fullmatch(r"(?:\d+(?:ms|[smhdwy]))+", span):
            what = f"{function}(…[{span}]) smears short levels and skips samples when zoomed out"
            yield Finding("fixed-range", where, what, "use $__rate_interval", is_error=False)
