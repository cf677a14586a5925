"""RUN/diagnostic.jsonl: cells that asked for usage in every chunk, one a line; they never count in a verdict."""

from dataclasses import dataclass
from pathlib import Path

from loadgen.load.summary import Distribution
from loadgen.store.jsonl import Appender, read
from loadgen.store.model import CellKey

FILE = "diagnostic.jsonl"
REPEAT = 2_000_000
"""Stands for a diagnostic cell in its key and its prompts' names, so that its prompts are nobody else's."""


@dataclass(frozen=True)
class DiagnosticCell:
    """What a window with continuous usage showed."""

    key: CellKey
    started_at: str
    window_s: float
    output_tokens_per_s: float
    requests: int
    """That succeeded and ended in the window."""
    uncounted: int
    """Of all that succeeded: those for whose chunks the server told no tokens."""
    tpot_s: Distribution
    tokens_per_chunk: Distribution
    """Over the token-bearing chunks that arrived in the window."""
    chunks_by_tokens: tuple[tuple[int, int], ...]
    """(tokens, chunks that held so many), ascending."""
    acceptance_rate: Distribution
    """Over prompts: the server's own `draft_acceptance_rate`; n = 0 where it sends no `metrics.speculative_decoding`
    (vLLM 0.29 and later with `--per-request-spec-decode-metrics`). Prompts without any draft are left out.
    """
    acceptance_length: Distribution
    """Likewise: `mean_acceptance_length`."""


def append_diagnostic(run: Path, cell: DiagnosticCell) -> None:
    """Writes one line, on the disk when this returns."""
    file = Appender(run / FILE)
    try:
        file.append(cell)
        file.sync()
    finally:
        file.close()


def diagnostics(run: Path) -> tuple[DiagnosticCell, ...]:
    """The diagnostic cells in their order; of two with one key the first. UsageError if a line cannot be read."""
    found: dict[CellKey, DiagnosticCell] = {}
    for cell in read(run / FILE, DiagnosticCell):
        found.setdefault(cell.key, cell)
    return tuple(found.values())
