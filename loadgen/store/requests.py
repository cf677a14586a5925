"""RequestRecords in the run folder: chunk times delta-encoded, long ones in half-second bins."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from loadgen.load.record import RequestRecord
from loadgen.store.jsonl import Appender, read
from loadgen.store.model import CellKey

MAX_CHUNKS = 4096
"""Above this a record keeps half-second bins instead of every chunk: 10 million events must not make a 100 MB line."""
BIN_S = 0.5
TICK_S = 1e-5
"""Chunk times are kept to 10 µs: below what a client can tell apart."""


@dataclass(frozen=True)
class StoredRequest:
    """One line of requests.jsonl. `record` has no chunk times; they stand beside it, encoded."""

    cell: CellKey
    record: RequestRecord
    phase: str = "measure"
    """`measure` or `warmup`."""
    chunk_deltas: tuple[int, ...] = ()
    """Ticks of 10 µs: the first from the request's start, then from chunk to chunk."""
    chunk_bins: tuple[int, ...] = ()
    """Chunks per half second from the request's start, where there were too many to keep."""


def pack(cell: CellKey, record: RequestRecord, phase: str = "measure") -> StoredRequest:
    """The line for a record; `unpack` gives it back, chunk times to 10 µs (or lost to bins above MAX_CHUNKS)."""
    times = record.chunk_times_s
    bare = replace(record, chunk_times_s=())
    if len(times) > MAX_CHUNKS:
        bins = [0] * (int((times[-1] - record.start_s) / BIN_S) + 1)
        for time_s in times:
            bins[max(0, int((time_s - record.start_s) / BIN_S))] += 1
        return StoredRequest(cell, replace(bare, chunk_tokens=None), phase, chunk_bins=tuple(bins))
    ticks = [round((time_s - record.start_s) / TICK_S) for time_s in times]
    deltas = tuple(b - a for a, b in zip([0, *ticks], ticks, strict=False))
    return StoredRequest(cell, bare, phase, chunk_deltas=deltas)


def unpack(stored: StoredRequest) -> RequestRecord:
    """The record with its chunk times."""
    times: list[float] = []
    ticks = 0
    for delta in stored.chunk_deltas:
        ticks += delta
        times.append(stored.record.start_s + ticks * TICK_S)
    return replace(stored.record, chunk_times_s=tuple(times))


def append_request(file: Appender, cell: CellKey, record: RequestRecord, phase: str = "measure") -> None:
    """Writes one record."""
    file.append(pack(cell, record, phase))


def read_requests(path: Path, cell: CellKey | None = None) -> Iterator[StoredRequest]:
    """The stored requests of a file, of one cell if given."""
    for stored in read(path, StoredRequest):
        if cell is None or stored.cell == cell:
            yield stored
