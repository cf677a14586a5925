"""One load run as the lines that a person reads."""

from collections import Counter
from typing import Any

from loadgen.load.health import CPU_LIMIT, LAG_LIMIT_S, ZERO_GAP_LIMIT
from loadgen.load.record import Outcome
from loadgen.load.shape import LoadResult
from loadgen.load.summary import distribution
from loadgen.metrics.model import CounterDelta

_COLUMNS = ("mean", "p50", "p90", "p99", "max")
_LATENCIES = ("ttft_s", "tpot_s", "e2e_s", "chunk_gap_s")


def table(figures: dict[str, Any], result: LoadResult, server: CounterDelta) -> str:
    """Latencies in milliseconds, throughput, outcomes, the errors, client and server."""
    lines = [f"{'milliseconds':14}{'n':>8}" + "".join(f"{name:>11}" for name in _COLUMNS)]
    for name in _LATENCIES:
        row = figures[name]
        cells = "".join(f"{_ms(row[column]):>11}" for column in _COLUMNS)
        lines.append(f"{name.removesuffix('_s'):14}{row['n']:>8}{cells}")
    lines += ["", f"output         {figures['output_tokens_per_s']:,.1f} tokens/s over {result.window_s:.2f} s"]
    length = distribution(r.output_tokens for r in result.records if r.outcome is Outcome.OK)
    if length.mean is not None:
        shown = f"mean {length.mean:,.1f}, p50 {length.p50:,.0f}, max {length.max:,.0f} tokens"
        lines.append(f"output length  {shown}, {length.n} requests")
    met = [f"{name} {count}" for name, count in figures["outcomes"].items() if count]
    lines.append(f"outcomes       {', '.join(met) or 'none'}")
    health = result.health
    lines.append(
        f"client         {health.in_flight_mean:.1f} in flight, loop lag p99 {health.loop_lag_p99_s * 1e3:.1f} ms, "
        f"CPU {health.cpu_share:.0%} of a core"
    )
    lines += _server_lines(server)
    return "\n".join([*lines, *_errors(result)])


def warnings_of(result: LoadResult) -> list[str]:
    """What a reader must know before trusting the figures, each with its cure."""
    health, found = result.health, []
    if health.loop_lag_p99_s > LAG_LIMIT_S or health.cpu_share > CPU_LIMIT * health.processes:
        found.append(
            f"client-bound: loop lag p99 {health.loop_lag_p99_s * 1e3:.1f} ms, CPU {health.cpu_share:.0%}; give the "
            "client a core of its own, use --workers, or lower the concurrency"
        )
    if health.zero_gap_share > ZERO_GAP_LIMIT:
        found.append(
            f"{health.zero_gap_share:.0%} of the chunks came together with the one before (a proxy, or a busy server): "
            "trust TPOT, not the chunk gaps"
        )
    n = result.outcomes.get("ok", 0)
    if 0 < n < 100:
        found.append(f"p99 of {n} requests rests on the largest value; 100 requests or more make it firm")
    per_record = Counter(warning for record in result.records for warning in record.warnings)
    return [*found, *(f"{count} × {text}" for text, count in per_record.most_common())]


def _errors(result: LoadResult) -> list[str]:
    """The failures by category and message, the most frequent first."""
    failed = [r for r in result.records if r.outcome not in (Outcome.OK, Outcome.CANCELLED)]
    if not failed:
        return []
    kinds = Counter((r.outcome.value, r.error or "no message") for r in failed)
    lines = [f"{count:>7}  {outcome:18}  {error[:160]}" for (outcome, error), count in kinds.most_common(10)]
    rest = len(kinds) - len(lines)
    return ["", "errors", *lines, *([f"         and {rest} more kinds"] if rest > 0 else [])]


def _server_lines(server: CounterDelta) -> list[str]:
    parts = [
        ("generated", server.generation_tokens, ",.0f", " tokens"),
        ("acceptance rate", server.acceptance_rate, ".3f", ""),
        ("mean acceptance length", server.mean_acceptance_length, ".2f", ""),
        ("tokens per step", server.tokens_per_step, ".2f", ""),
        ("decode batch", server.decode_batch, ".1f", ""),
        ("prefix-cache hits", server.prefix_cache_hit_rate, ".1%", ""),
    ]
    said = [f"{name} {value:{form}}{unit}" for name, value, form, unit in parts if value is not None]
    lines = [f"server         {', '.join(said) or 'n/a'}"]
    return [*lines, *(f"               warning: {warning}" for warning in server.warnings)]


def _ms(seconds: float | None) -> str:
    return "n/a" if seconds is None else f"{seconds * 1e3:,.2f}"
