"""Tokens per chunk, and what asking for them costs, as a plain table."""

from loadgen.analysis.diagnostic import DiagnosticFinding, Spread
from loadgen.analysis.model import Findings
from loadgen.report.schedule_sections import Section
from loadgen.report.words import MISSING, clean, fixed, milliseconds, percent, ratio_of

SHOWN = 4
"""Numbers of tokens with a column of their own; what is above them is one column."""


LEAD = (
    "From one cell each with usage in every chunk (--diagnose), which no verdict counts. A chunk is one engine step "
    "unless the path joins chunks: then the row without speculation lies above 1 too."
)


def diagnostic_sections(findings: Findings) -> tuple[Section, ...]:
    """One section, or none where nothing was diagnosed."""
    found = findings.diagnostics
    if not found:
        return ()
    return (
        Section(
            anchor="diagnosis",
            title="Tokens per chunk",
            lead=(LEAD,),
            header=(
                "profile",
                "workload",
                "in flight",
                "chunks",
                "tokens/chunk",
                *(f"{tokens}" for tokens in range(1, SHOWN + 1)),
                f"over {SHOWN}",
                "TPOT, ms",
                "without",
                "tokens/s, with / without",
            ),
            rows=tuple(_row(one) for one in found),
            notes=tuple(_notes(found)),
        ),
    )


def _row(one: DiagnosticFinding) -> tuple[str, ...]:
    shares = dict(one.chunk_shares)
    condition = one.condition
    return (
        clean(one.profile),
        f"{clean(condition.workload)}, {condition.input_tokens} tokens, t {condition.temperature:g}",
        str(one.concurrency),
        f"{one.tokens_per_chunk.n:,}",
        fixed(one.tokens_per_chunk.mean, 2),
        *(_share(shares, shares.get(tokens, 0.0)) for tokens in range(1, SHOWN + 1)),
        _share(shares, sum(share for tokens, share in shares.items() if tokens > SHOWN)),
        milliseconds(one.tpot_s),
        _range_ms(one.tpot_s_without),
        _cost(one),
    )


def _share(shares: dict[int, float], share: float) -> str:
    return percent(share) if shares else MISSING


def _range_ms(spread: Spread | None) -> str:
    if spread is None:
        return MISSING
    mean, low, high = (milliseconds(value) for value in (spread.mean, spread.low, spread.high))
    return f"{mean} ({low} to {high})" if spread.n > 1 else mean


def _cost(one: DiagnosticFinding) -> str:
    """`0.96× of 3 cells`; says where that is no more than the cells' own scatter."""
    without = one.tokens_per_s_without
    if without is None:
        return MISSING
    cells = f"{without.n} cell{'s' if without.n > 1 else ''}"
    scatter = ", within their scatter" if without.n > 1 and not one.beyond_scatter else ""
    return f"{ratio_of(one.throughput_ratio)} of {cells}{scatter}"


def _notes(found: tuple[DiagnosticFinding, ...]) -> list[str]:
    notes = ["Numbered columns: the share of chunks that held so many tokens. Brackets: lowest to highest cell."]
    for one in found:
        rate, length = one.acceptance_rate, one.acceptance_length
        if rate.n:
            notes.append(
                f"{clean(one.profile)} on {clean(one.condition.workload)}, by prompt (n = {rate.n}): acceptance "
                f"{percent(rate.mean)} (median {percent(rate.p50)}, p90 {percent(rate.p90)}), "
                f"mean acceptance length {fixed(length.mean, 2)}, as the server says."
            )
        if one.uncounted:
            notes.append(
                f"{clean(one.profile)}: the server told no tokens per chunk for {one.uncounted} requests; they are "
                "left out here."
            )
    return notes
