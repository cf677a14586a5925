"""Keeps finished exchanges raw until there is time to decode them, and sums up what a result needs."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from loadgen.load.arrivals import Arrivals, End
from loadgen.load.decode import Asked, Slot, decode
from loadgen.load.record import RequestRecord
from loadgen.load.sums import WindowSums

BYTE_BUDGET = 24 * 1024 * 1024
"""Memory of raw blocks that may wait for the end of the run; beyond it requests are decoded while the load runs."""
BLOCK_COST = 100
"""Bytes that a block takes beside its content: its object, its time, and their places in two lists."""
EVENT_BUDGET = 1_000_000
"""Chunk times kept in memory (32 bytes each); beyond it a record keeps its summary only and says so (`on_record` always
gets all of it).
"""
DROPPED = "its chunk times were left out, to bound memory: its gaps are in no figure"


_NO_SLOT = Slot()


class Collector:
    """Finished exchanges in, records and window sums out. `open_s` and `close_s` are set by the load as it goes:
    what is decoded before the window has closed ended before that, so infinity stands for "not yet". `count_tokens`:
    somebody watches the progress. `keep`: records are kept
    here as well as given to `on_record`.
    """

    def __init__(
        self,
        on_record: Callable[[RequestRecord], None] | None,
        byte_budget: int = BYTE_BUDGET,
        event_budget: int = EVENT_BUDGET,
        *,
        count_tokens: bool = True,
        keep: bool = True,
    ) -> None:
        self._keep = keep
        self._count_tokens = count_tokens
        self.sums = WindowSums()
        self.records: list[RequestRecord] = []
        self.finished = 0
        self.failed = 0
        self.finished_reads = 0
        self.finished_tokens = 0
        self._on_record = on_record
        self._pending: deque[tuple[Asked, Arrivals, Slot]] = deque()
        self._pending_bytes = 0
        self._byte_budget = byte_budget
        self._events_left = event_budget
        self._relief: asyncio.Task[None] | None = None

    def add(self, asked: Asked, arrivals: Arrivals, slot: Slot = _NO_SLOT) -> None:
        """Takes a finished exchange. Cheap: nothing is decoded here unless too many bytes wait."""
        self.finished += 1
        self.finished_reads += len(arrivals.times_s)
        if arrivals.ended is End.COMPLETE and arrivals.status == 200:
            self.finished_tokens += _token_hint(arrivals) if self._count_tokens else 0
        elif arrivals.ended is not End.CANCELLED:
            self.failed += 1
        self._pending.append((asked, arrivals, slot))
        self._pending_bytes += _cost(arrivals)
        while self._pending_bytes > 2 * self._byte_budget:
            self._decode_one()  # the relief cannot follow: better a lag that shows than memory without end
        if self._pending_bytes > self._byte_budget and (self._relief is None or self._relief.done()):
            self._relief = asyncio.get_running_loop().create_task(self._relieve())

    def decode_pending(self) -> None:
        """Decodes all that waits, oldest first."""
        while self._pending:
            self._decode_one()

    async def finish(self) -> None:
        """All is decoded, nothing runs on."""
        if self._relief is not None:
            self._relief.cancel()
            await asyncio.gather(self._relief, return_exceptions=True)
        self.decode_pending()

    async def _relieve(self) -> None:
        while self._pending and self._pending_bytes > self._byte_budget // 2:
            self._decode_one()
            await asyncio.sleep(0)

    def _decode_one(self) -> None:
        asked, arrivals, slot = self._pending.popleft()
        self._pending_bytes -= _cost(arrivals)
        record = decode(arrivals, asked, slot)
        self.sums.add(record)
        if self._on_record is not None:
            self._on_record(record)
        if not self._keep:
            return
        self._events_left -= len(record.chunk_times_s)
        if self._events_left < 0:
            record = without_times(record)
        self.records.append(record)


def without_times(record: RequestRecord) -> RequestRecord:
    """The record's summary: its chunk times are gone, and it says so."""
    warnings = (*record.warnings, DROPPED)
    return replace(record, chunk_times_s=(), chunk_tokens=None, token_ids=None, warnings=warnings)


def _cost(arrivals: Arrivals) -> int:
    return arrivals.size + BLOCK_COST * len(arrivals.times_s)


def _token_hint(arrivals: Arrivals) -> int:
    """The reply's token count as its last bytes name it, for the progress display only; else one per read."""
    tail = b"".join(arrivals.blocks[-3:])
    _, found, rest = tail.rpartition(b'"completion_tokens":')
    digits = rest[:12].lstrip().split(b"}")[0].split(b",")[0]
    return int(digits) if found and digits.isdigit() else len(arrivals.times_s)
