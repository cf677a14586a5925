"""What a result needs of its records, summed up as they come."""

import math
from bisect import bisect_left
from collections.abc import Sequence

from loadgen.load.health import lockstep
from loadgen.load.record import Outcome, RequestRecord
from loadgen.load.shape import ClientHealth, LoadResult
from loadgen.load.window import seconds_in_window, tokens_in_window


class WindowSums:
    """Records in, window sums out. `open_s` and `close_s` are set as the load goes: what is added before the window has
    closed ended before that, so infinity stands for "not yet".
    """

    def __init__(self) -> None:
        self.open_s = math.inf
        self.close_s = math.inf
        self.tokens_in_window = 0.0
        self.seconds_in_window = 0.0
        self.ended_in_window: list[float] = []
        self.outcomes = dict.fromkeys((outcome.value for outcome in Outcome), 0)
        self._events = 0
        self._zero_gaps = 0

    @property
    def zero_gap_share(self) -> float:
        """Share of the window's token-bearing events that came in the same read as the one before."""
        return self._zero_gaps / self._events if self._events else 0.0

    def add(self, record: RequestRecord) -> None:
        """Takes a record with its chunk times."""
        self.outcomes[record.outcome.value] += 1
        self.seconds_in_window += seconds_in_window(record, self.open_s, self.close_s)
        if record.outcome is not Outcome.OK:
            return
        self.tokens_in_window += tokens_in_window(record, self.open_s, self.close_s)
        if self.open_s <= record.end_s < self.close_s:
            self.ended_in_window.append(record.end_s)
        times = record.chunk_times_s
        first, last = bisect_left(times, self.open_s), bisect_left(times, self.close_s)
        self._events += max(0, last - first)
        self._zero_gaps += sum(times[i] == times[i - 1] for i in range(max(first, 1), last))

    def result(
        self,
        records: Sequence[RequestRecord],
        *,
        loop_lag_p99_s: float,
        cpu_share: float,
        interrupted: bool,
        processes: int = 1,
    ) -> LoadResult:
        """The result of a run, once all its records were added."""
        window = self.close_s - self.open_s
        ok_seconds = [r.end_s - r.start_s for r in records if r.outcome is Outcome.OK]
        health = ClientHealth(
            loop_lag_p99_s=loop_lag_p99_s,
            cpu_share=cpu_share,
            in_flight_mean=self.seconds_in_window / window if window > 0 else 0.0,
            zero_gap_share=self.zero_gap_share,
            lockstep=lockstep(self.ended_in_window, sum(ok_seconds) / len(ok_seconds)) if ok_seconds else 0.0,
            processes=processes,
        )
        return LoadResult(
            records=tuple(records),
            window_open_s=self.open_s,
            window_close_s=self.close_s,
            output_tokens_in_window=self.tokens_in_window,
            requests_ended_in_window=len(self.ended_in_window),
            health=health,
            interrupted=interrupted,
            outcomes=dict(self.outcomes),
        )
