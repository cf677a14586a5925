"""A Locust worker's side: its users are counted, a load process sends the requests, the records go to the master.

No asyncio here: Locust has patched this process. Threads are greenlets then.
"""

import threading
from collections.abc import Callable
from dataclasses import replace

from loadgen.clock import now_s
from loadgen.commands.locust_job import CellOrder, NodeState, boot_id
from loadgen.commands.workload_options import chosen_workload
from loadgen.load.record import Outcome, RequestRecord
from loadgen.load.workers.blocking import BlockingWorker
from loadgen.load.workers.messages import Ended, Fault, Job, Progress, Record, Stop, Users, Window
from loadgen.workloads.lengths import ratio_counter

STREAM_S = 0.25
Fire = Callable[[str, str, float, int, Exception | None], None]
"""(kind, name, milliseconds, tokens, failure): one line of Locust's own statistics."""


class RequestFailedError(Exception):
    """What Locust shows of a request that was not OK."""


class LocustNode:
    """One Locust worker; `tell` reaches the master, `fire` Locust's statistics."""

    def __init__(self, tell: Callable[[NodeState], None], fire: Fire) -> None:
        self._tell, self._fire = tell, fire
        self._worker = BlockingWorker()
        self._users = 0
        self._order: CellOrder | None = None
        self._state = NodeState(-1, 0)
        self._records: list[RequestRecord] = []
        self._closed = False
        threading.Thread(target=self._listen, daemon=True).start()

    def user_started(self) -> None:
        """One more of Locust's users lives here: one more request in flight."""
        self._users += 1
        self._worker.send(Users(self._users))

    def user_stopped(self) -> None:
        """One less."""
        self._users -= 1
        self._worker.send(Users(self._users))

    def prepare(self, order: CellOrder) -> None:
        """The next cell: its prompts are made, this worker's share of them loaded."""
        number, count = order.place
        shift_s = 0.0 if boot_id() == order.boot_id else now_s() - order.master_s
        # the least delay of a message is nearest to the difference of the clocks
        if self._order is not None and shift_s:
            shift_s = min(shift_s, self._state.shift_s)
        self._order = order
        self._state = NodeState(order.number, number, shift_s=shift_s)
        workload = chosen_workload(order.cell.condition.workload, order.input_lengths, order.output_lengths)
        prompts = workload.prompts(order.prompts, ratio_counter(order.chars_per_token))
        share = tuple(prompts[number::count])
        self._worker.send(Job(order.target, share, (number, count), stream_s=STREAM_S))
        self._worker.send(Users(self._users))
        self._report()

    def window(self, *, opens: bool) -> None:
        """The master's window opens or closes."""
        self._worker.send(Window(opens=opens))

    def stop(self) -> None:
        """The cell is over: requests in flight finish."""
        self._worker.send(Stop())

    def close(self) -> None:
        """The load process ends."""
        self._closed = True
        self._worker.close()

    def _listen(self) -> None:
        while (message := self._worker.receive()) is not None:
            if isinstance(message, Record):
                self._take(message.record)
            elif isinstance(message, Progress):
                self._state = replace(
                    self._state, holding=message.holding, finished=message.finished, exhausted=message.exhausted
                )
                self._report()
            elif isinstance(message, Ended):
                self._state = replace(
                    self._state, ended=True, loop_lag_p99_s=message.loop_lag_p99_s, cpu_s=message.cpu_s
                )
                self._report()
            elif isinstance(message, Fault):
                self._fail(message.text)
        if not self._closed:
            self._fail("a load process ended by itself")

    def _fail(self, text: str) -> None:
        self._state = replace(self._state, fault=text)
        self._report()

    def _report(self) -> None:
        records, self._records = tuple(self._records), []
        self._tell(replace(self._state, records=records))

    def _take(self, record: RequestRecord) -> None:
        self._records.append(record)
        if self._order is None:
            return
        cell = self._order.cell
        name = f"{cell.condition.workload} {cell.profile} C={cell.level}"
        if record.outcome is not Outcome.OK:
            seconds = record.end_s - record.start_s
            self._fire("POST", name, seconds * 1e3, 0, RequestFailedError(f"{record.outcome}: {record.error}"))
            return
        # case C34: Locust would stop its clock at the headers; these are our own times, to the last token
        for kind, value in (("POST", record.e2e_s), ("TTFT", record.ttft_s), ("TPOT", record.tpot_s)):
            if value is not None:
                self._fire(kind, name, value * 1e3, record.output_tokens, None)
