"""cells.csv: one row a cell, with units in the column names."""

import csv
import io
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from loadgen.load.record import Outcome
from loadgen.load.shape import ClientHealth
from loadgen.load.summary import Distribution
from loadgen.metrics.model import CounterDelta, GaugeSummary
from loadgen.report.summary import plain
from loadgen.report.words import clean
from loadgen.store.model import CellKey, CellResult, Condition

# A spreadsheet takes text that begins so for a formula (OWASP, CSV injection).
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "|")
STATISTICS = ("n", "mean", "p50", "p90", "p99", "max")
NOTHING = Distribution(n=0)
# Gives the columns of a run without a cell.
NO_CELL = CellResult(
    key=CellKey("", Condition("", 0, 0.0), 1, 0),
    order=0,
    started_at="",
    window_s=0.0,
    output_tokens_per_s=0.0,
    requests_per_s=0.0,
    outcomes={},
    ttft_s=NOTHING,
    tpot_s=NOTHING,
    e2e_s=NOTHING,
    chunk_gap_s=NOTHING,
    output_tokens=NOTHING,
    prompt_tokens=NOTHING,
    client=ClientHealth(0.0, 0.0, 0.0, 0.0),
    window=None,
    idle=None,
    gauges=GaugeSummary(n=0),
    client_tokens_total=0,
)


def cells_csv(cells: Iterable[CellResult], *, simulated: bool = False) -> str:
    """CSV text with a header row and one row per cell in the order of measurement; unknown figures are empty.

    The last column says of each row whether a simulator gave its figures, since rows are copied elsewhere.
    """
    rows = [_row(cell) | {"simulated": simulated} for cell in sorted(cells, key=lambda c: c.order)]
    out = io.StringIO()
    writer = csv.DictWriter(out, [*_row(NO_CELL), "simulated"], lineterminator="\n", extrasaction="raise")
    writer.writeheader()
    writer.writerows({name: _field(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


def quote_formula(text: str) -> str:
    """The text with an apostrophe before it if a spreadsheet would run it as a formula (C102)."""
    return f"'{text}" if text.lstrip().startswith(FORMULA_STARTS) or text.startswith(FORMULA_STARTS) else text


def _field(value: object) -> object:
    """One CSV field: texts cleaned and quoted, non-finite and missing numbers empty."""
    if isinstance(value, str):
        return quote_formula(clean(value))
    value = plain(value)
    return "" if value is None else value


def _row(cell: CellResult) -> dict[str, object]:
    """One cell as column → value."""
    key, client, gauges = cell.key, cell.client, cell.gauges
    row: dict[str, object] = {
        "order": cell.order,
        "started_at": cell.started_at,
        "profile": key.profile,
        "workload": key.condition.workload,
        "input_tokens": key.condition.input_tokens,
        "temperature": key.condition.temperature,
        "concurrency": key.level,
        "repeat": key.repeat,
        "session": key.session,
        "server_start": cell.server_start,
        "window_s": cell.window_s,
        "output_tokens_per_s": cell.output_tokens_per_s,
        "requests_per_s": cell.requests_per_s,
        **{f"requests_{outcome.value}": cell.outcomes.get(outcome.value, 0) for outcome in Outcome},
        **_distribution("ttft", "_s", cell.ttft_s),
        **_distribution("tpot", "_s", cell.tpot_s),
        **_distribution("e2e", "_s", cell.e2e_s),
        **_distribution("chunk_gap", "_s", cell.chunk_gap_s),
        **_distribution("output_tokens", "", cell.output_tokens),
        **_distribution("prompt_tokens", "", cell.prompt_tokens),
        "client_loop_lag_p99_s": client.loop_lag_p99_s,
        "client_cpu_share": client.cpu_share,
        "client_in_flight_mean": client.in_flight_mean,
        "client_zero_gap_share": client.zero_gap_share,
        "client_lockstep": client.lockstep,
        "client_tokens_total": cell.client_tokens_total,
    }
    row |= _server(cell.window)
    row |= {
        "running_mean": gauges.running_mean,
        "running_max": gauges.running_max,
        "waiting_mean": gauges.waiting_mean,
        "waiting_max": gauges.waiting_max,
        "kv_cache_usage_max": gauges.kv_cache_usage_max,
        "scrape_p50_s": gauges.scrape_p50_s,
        "scrape_max_s": gauges.scrape_max_s,
        "steal_share": cell.steal_share,
        "repeated_ngram_share": cell.repeated_ngram_share,
        "token_sources": "; ".join(f"{name} {count}" for name, count in sorted(cell.token_sources.items())),
        "prompts_sha256": cell.prompts_sha256,
        "warnings": "; ".join(cell.warnings),
    }
    return row


def _distribution(name: str, unit: str, found: Distribution) -> dict[str, object]:
    """The six numbers of a distribution: `ttft_n`, `ttft_mean_s`, …"""
    values = asdict(found)
    return {f"{name}_{part}{'' if part == 'n' else unit}": values[part] for part in STATISTICS}


def _server(window: CounterDelta | None) -> dict[str, object]:
    """The server's own figures over the window; all None if the server has no metrics."""
    delta: Any = window
    names = (
        "generation_tokens",
        "prompt_tokens",
        "drafts",
        "draft_tokens",
        "accepted_tokens",
        "acceptance_rate",
        "mean_acceptance_length",
        "tokens_per_step",
        "draft_coverage",
        "decode_batch",
        "steps_per_s",
        "prefix_cache_hit_rate",
        "preemptions",
        "process_cpu_s",
        "reset_detected",
    )
    row: dict[str, object] = {f"server_{name}": None if delta is None else getattr(delta, name) for name in names}
    positions = () if window is None else window.acceptance_per_position
    row["server_acceptance_per_position"] = "; ".join(f"{share:.4f}" for share in positions)
    return row
