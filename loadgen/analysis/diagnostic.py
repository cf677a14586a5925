"""What usage in every chunk shows and costs: a diagnostic cell beside the verdict cells of its level."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from loadgen.load.summary import Distribution
from loadgen.store.diagnostic import DiagnosticCell
from loadgen.store.model import CellResult, Condition


@dataclass(frozen=True)
class Spread:
    """The mean of n cells, and the lowest and the highest of them."""

    mean: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class DiagnosticFinding:
    """One profile under one condition at one level. `with` is one cell, so that no interval can be given."""

    profile: str
    condition: Condition
    concurrency: int
    requests: int
    uncounted: int
    tokens_per_chunk: Distribution
    chunk_shares: tuple[tuple[int, float], ...]
    """(tokens, share of chunks that held so many)."""
    tokens_per_s: float
    """With usage in every chunk."""
    tokens_per_s_without: Spread | None
    """Of the verdict cells, which ask for the final usage only."""
    tpot_s: float | None
    tpot_s_without: Spread | None
    acceptance_rate: Distribution
    acceptance_length: Distribution

    @property
    def throughput_ratio(self) -> float | None:
        """Tokens/s with / without usage in every chunk: below 1 is what it costs; None without a verdict cell."""
        found = self.tokens_per_s_without
        return self.tokens_per_s / found.mean if found and found.mean > 0 else None

    @property
    def beyond_scatter(self) -> bool:
        """True if the cell lies outside all verdict cells of its level, of which there are at least two."""
        found = self.tokens_per_s_without
        return bool(found and found.n > 1 and not found.low <= self.tokens_per_s <= found.high)


def diagnose(diagnosed: Iterable[DiagnosticCell], cells: Sequence[CellResult]) -> tuple[DiagnosticFinding, ...]:
    """One finding per diagnostic cell, beside the cells of the same profile, condition, level and session."""
    return tuple(_finding(one, [cell for cell in cells if _same_place(one, cell)]) for one in diagnosed)


def _same_place(one: DiagnosticCell, cell: CellResult) -> bool:
    mine, other = one.key, cell.key
    return (mine.profile, mine.condition, mine.level, mine.session) == (
        other.profile,
        other.condition,
        other.level,
        other.session,
    )


def _finding(one: DiagnosticCell, beside: Sequence[CellResult]) -> DiagnosticFinding:
    chunks = sum(count for _, count in one.chunks_by_tokens)
    return DiagnosticFinding(
        profile=one.key.profile,
        condition=one.key.condition,
        concurrency=one.key.level,
        requests=one.requests,
        uncounted=one.uncounted,
        tokens_per_chunk=one.tokens_per_chunk,
        chunk_shares=tuple((tokens, count / chunks) for tokens, count in one.chunks_by_tokens),
        tokens_per_s=one.output_tokens_per_s,
        tokens_per_s_without=_spread([cell.output_tokens_per_s for cell in beside]),
        tpot_s=one.tpot_s.mean,
        tpot_s_without=_spread([cell.tpot_s.mean for cell in beside if cell.tpot_s.mean is not None]),
        acceptance_rate=one.acceptance_rate,
        acceptance_length=one.acceptance_length,
    )


def _spread(values: Sequence[float]) -> Spread | None:
    return Spread(sum(values) / len(values), min(values), max(values), len(values)) if values else None
