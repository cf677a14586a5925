"""From one load run to the facts of its cell: pure."""

import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from loadgen.load.record import Outcome, RequestRecord
from loadgen.load.shape import LoadResult
from loadgen.load.summary import distribution
from loadgen.load.window import tokens_per_event
from loadgen.metrics.model import CounterDelta, GaugeSummary
from loadgen.store.model import CellKey, CellResult

BIN_S = 0.5


@dataclass(frozen=True)
class ServerSide:
    """What the server's own metrics said about a cell."""

    window: CounterDelta | None
    idle: CounterDelta | None
    gauges: GaugeSummary
    steal_share: float | None
    start_number: int


def cell_result(
    key: CellKey, load: LoadResult, server: ServerSide, *, order: int, started_at: str, prompts_sha256: str
) -> CellResult:
    """The facts of a cell. A figure counts where its event falls into the window: TTFT by the first token, TPOT and
    E2E by the last one; so no request counts for what ramp-up or drain did to it.
    """
    opened, closed = load.window_open_s, load.window_close_s
    good = [r for r in load.records if r.outcome is Outcome.OK]
    begun = [r for r in good if r.first_token_s is not None and opened <= r.first_token_s < closed]
    ended = [r for r in good if opened <= (r.last_token_s or r.end_s) < closed]
    repeated = [r.repeated_ngram_share for r in good if r.repeated_ngram_share is not None]
    return CellResult(
        key=key,
        order=order,
        started_at=started_at,
        window_s=load.window_s,
        output_tokens_per_s=load.output_tokens_per_s,
        requests_per_s=len(ended) / load.window_s if load.window_s > 0 else 0.0,
        outcomes=dict.fromkeys((o.value for o in Outcome), 0) | Counter(r.outcome.value for r in load.records),
        ttft_s=distribution(r.ttft_s for r in begun),
        tpot_s=distribution(r.tpot_s for r in ended),
        e2e_s=distribution(r.e2e_s for r in ended),
        chunk_gap_s=distribution(_gaps(good, opened, closed)),
        output_tokens=distribution(r.output_tokens for r in ended),
        prompt_tokens=distribution(r.prompt_tokens for r in begun),
        client=load.health,
        window=server.window,
        idle=server.idle,
        gauges=server.gauges,
        client_tokens_total=sum(r.output_tokens for r in load.records),
        token_sources=dict(Counter(r.token_source for r in good)),
        repeated_ngram_share=sum(repeated) / len(repeated) if repeated else None,
        half_second_tokens=tuple(tokens_per_bin(good, opened, closed)),
        steal_share=server.steal_share,
        prompts_sha256=prompts_sha256,
        server_start=server.start_number,
        warnings=tuple(sorted({w for r in load.records for w in r.warnings})),
    )


def tokens_per_bin(records: Iterable[RequestRecord], opened: float, closed: float) -> list[float]:
    """Output tokens in each whole half second of the window."""
    bins = [0.0] * int((closed - opened) / BIN_S)
    for record in records:
        for time_s, count in zip(record.chunk_times_s, tokens_per_event(record), strict=True):
            index = int((time_s - opened) // BIN_S)
            if 0 <= index < len(bins):
                bins[index] += count
    return bins


def _gaps(records: Iterable[RequestRecord], opened: float, closed: float) -> Iterable[float]:
    """Seconds between a request's token-bearing events, where the later one falls into the window."""
    for record in records:
        times = record.chunk_times_s
        for before, after in itertools.pairwise(times):
            if opened <= after < closed:
                yield after - before
