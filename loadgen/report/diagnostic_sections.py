"""Tokens per chunk, and what asking for them costs, as a plain table."""

from collections.abc import Iterator

from loadgen.analysis.diagnostic import DiagnosticFinding, Spread
from loadgen.analysis.model import Findings
from loadgen.report.schedule_sections import Section
from loadgen.report.words import MISSING, clean, condition_words, fixed, milliseconds, percent, ratio_of
from loadgen.store.model import Condition

SHOWN = 4
"""Numbers of tokens with a column of their own; what is above them is one column."""


LEAD = (
    "From one cell each with usage in every chunk (--diagnose), which no verdict counts. A chunk is one engine step "
    "unless the path joins chunks: then the row without speculation lies above 1 too."
)
NOTE = (
    "Numbered columns: the share of chunks that held so many tokens. TPOT and tok/s with usage in every chunk; without "
    "it TPOT is the verdict cells' mean, and tok/s is the ratio to theirs: what asking costs, from one cell."
)


def diagnostic_sections(findings: Findings) -> tuple[Section, ...]:
    """One section per condition that was diagnosed."""
    places = dict.fromkeys((one.condition, one.concurrency) for one in findings.diagnostics)
    return tuple(
        _section(f"diagnosis-{number}", condition, level, findings)
        for number, (condition, level) in enumerate(places, 1)
    )


def _section(anchor: str, condition: Condition, level: int, findings: Findings) -> Section:
    found = [one for one in findings.diagnostics if (one.condition, one.concurrency) == (condition, level)]
    shares = (*(f"{tokens}" for tokens in range(1, SHOWN + 1)), f"{SHOWN + 1}+")
    return Section(
        anchor=anchor,
        title=f"Tokens per chunk: {condition_words(condition)}, {level} in flight",
        lead=(LEAD,),
        header=("profile", "chunks", "mean", *shares, "TPOT, ms", "without", "tok/s"),
        rows=tuple(_row(one) for one in found),
        notes=(NOTE, *(note for one in found for note in _notes(one))),
    )


def _row(one: DiagnosticFinding) -> tuple[str, ...]:
    shares = dict(one.chunk_shares)
    more = sum(share for tokens, share in shares.items() if tokens > SHOWN)
    without = one.tpot_s_without
    return (
        clean(one.profile),
        f"{one.tokens_per_chunk.n:,}",
        fixed(one.tokens_per_chunk.mean, 2),
        *(_share(shares, shares.get(tokens, 0.0)) for tokens in range(1, SHOWN + 1)),
        _share(shares, more),
        milliseconds(one.tpot_s),
        milliseconds(without.mean if without else None),
        ratio_of(one.throughput_ratio),
    )


def _share(shares: dict[int, float], share: float) -> str:
    return percent(share) if shares else MISSING


def _notes(one: DiagnosticFinding) -> Iterator[str]:
    name, rate = clean(one.profile), one.acceptance_rate
    without = one.tokens_per_s_without
    if without is not None:
        yield f"{name}: {ratio_of(one.throughput_ratio)} of the tokens/s of {_beside(without)}{_scatter(one)}."
    if rate.n:
        yield (
            f"{name}, by prompt (n = {rate.n}): acceptance {percent(rate.mean)} (median {percent(rate.p50)}, "
            f"p90 {percent(rate.p90)}), mean acceptance length {fixed(one.acceptance_length.mean, 2)}, as the server "
            "says."
        )
    if one.uncounted:
        yield f"{name}: the server told no tokens per chunk for {one.uncounted} requests; they are left out here."


def _beside(without: Spread) -> str:
    """`3 verdict cells, which lie at 0.98× to 1.03× of their mean`."""
    if without.n == 1:
        return "one verdict cell"
    low, high = ratio_of(without.low / without.mean), ratio_of(without.high / without.mean)
    return f"{without.n} verdict cells, which lie at {low} to {high} of their mean"


def _scatter(one: DiagnosticFinding) -> str:
    without = one.tokens_per_s_without
    return ": no more than their scatter" if without and without.n > 1 and not one.beyond_scatter else ""
