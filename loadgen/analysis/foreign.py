"""Others' results as cells of a run, and what cannot be known from them."""

from collections.abc import Sequence
from dataclasses import replace

from loadgen.load.shape import ClientHealth
from loadgen.load.summary import Distribution
from loadgen.metrics.model import CounterDelta, GaugeSummary
from loadgen.store.foreign.model import ForeignCell
from loadgen.store.model import CellKey, CellResult, Condition

UNKNOWN = (
    "Imported: whether the client kept up (event-loop lag, CPU) is not known, so no cell could be voided for it.",
    "Imported: the servers' own counters are not known: no batch, no step time, no look for other traffic or restarts.",
    "Imported: whether both servers got the same prompts is not known; the comparison is as good as that.",
    "Imported: figures are over whole runs, ramp-up and drain included; the level is what the tool was asked to hold.",
)
NO_ACCEPTANCE = "Imported: acceptance is not known: the files hold no counters of drafts."
SOME_ACCEPTANCE = "Imported: acceptance is over each whole run; tokens per step are not known."


def imported_cells(
    cells: Sequence[ForeignCell], profile: str, condition: Condition, first_order: int = 0
) -> tuple[CellResult, ...]:
    """One cell per measurement, repeats of a level counted in their order. The condition names what was measured."""
    repeats: dict[int, int] = {}
    found = []
    for number, cell in enumerate(cells):
        repeat = repeats.get(cell.level, 0)
        repeats[cell.level] = repeat + 1
        key = CellKey(profile, condition, cell.level, repeat)
        found.append(_cell(cell, key, first_order + number))
    return tuple(found)


def unknowns(cells: Sequence[ForeignCell]) -> tuple[str, ...]:
    """What cannot be known from these files, a sentence each."""
    drafts = SOME_ACCEPTANCE if any(cell.drafts for cell in cells) else NO_ACCEPTANCE
    return (*UNKNOWN, drafts)


def _cell(cell: ForeignCell, key: CellKey, order: int) -> CellResult:
    reached = cell.in_flight_mean if cell.in_flight_mean is not None else float(cell.level)
    window = CounterDelta(cell.window_s) if cell.drafts is not None else None
    if window is not None:
        window = replace(
            window,
            drafts=cell.drafts,
            draft_tokens=cell.draft_tokens,
            accepted_tokens=cell.accepted_tokens,
            accepted_per_position=cell.accepted_per_position,
        )
    return CellResult(
        key=key,
        order=order,
        started_at=cell.started_at,
        window_s=cell.window_s,
        output_tokens_per_s=cell.output_tokens_per_s,
        requests_per_s=cell.requests_per_s,
        outcomes={"ok": cell.ok, "server_error": cell.failed},
        ttft_s=cell.ttft_s,
        tpot_s=cell.tpot_s,
        e2e_s=cell.e2e_s,
        chunk_gap_s=Distribution(0),
        output_tokens=cell.output_tokens,
        prompt_tokens=cell.prompt_tokens,
        client=ClientHealth(0.0, 0.0, reached, 0.0),
        window=window,
        idle=None,
        gauges=GaugeSummary(0),
        client_tokens_total=round(cell.output_tokens_per_s * cell.window_s),
        warnings=(f"imported from {cell.file} ({cell.tool})", *cell.warnings),
    )
