"""What Locust's processes need to know of a run, and what they tell each other."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from loadgen.load.record import RequestRecord
from loadgen.load.target import Target
from loadgen.store.codec import decode, encode
from loadgen.store.folder import write_whole
from loadgen.store.model import CellKey
from loadgen.workloads.base import PromptRequest

FOLDER_VARIABLE = "LOADGEN_LOCUST_RUN"
"""Environment variable that names the run folder to Locust's master."""
FILE = "locust.json"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class LocustJob:
    """Stands in the run folder as `locust.json`, written before Locust starts."""

    cells: tuple[CellKey, ...]
    """In the order in which they are walked."""
    targets: dict[str, Target]
    """By profile."""
    chars_per_token: dict[str, float]
    """By workload."""
    nodes: int
    window_s: float
    settle_s: float
    min_requests: int
    seed: int
    max_tokens: int | None = None
    input_lengths: str | None = None
    output_lengths: str | None = None


@dataclass(frozen=True)
class CellOrder:
    """Master to workers: the cell that comes next."""

    number: int
    cell: CellKey
    target: Target
    prompts: PromptRequest
    chars_per_token: float
    input_lengths: str | None
    output_lengths: str | None
    place: tuple[int, int]
    """This worker's number, and how many there are."""
    master_s: float
    """The master's monotonic clock, and the machine that it is of."""
    boot_id: str


@dataclass(frozen=True)
class NodeState:
    """A worker to the master: how its load stands. Times in `records` are by the worker's clock, which is `shift_s`
    ahead of the master's.
    """

    number: int
    place: int
    holding: int = 0
    finished: int = 0
    exhausted: bool = False
    ended: bool = False
    loop_lag_p99_s: float = 0.0
    cpu_s: float = 0.0
    shift_s: float = 0.0
    records: tuple[RequestRecord, ...] = ()
    fault: str | None = None


def write_job(folder: Path, job: LocustJob) -> None:
    """Into the run folder."""
    write_whole(folder / FILE, encode(job))


def read_job(folder: Path) -> LocustJob:
    """What `write_job` wrote; raises OSError or ValueError otherwise."""
    return decode((folder / FILE).read_bytes(), LocustJob)


def pack(fact: CellOrder | NodeState) -> bytes:
    """For Locust's own messages, which take bytes."""
    return msgspec.msgpack.encode(fact)


def unpack_order(data: bytes) -> CellOrder:
    """The master's word."""
    return msgspec.msgpack.decode(data, type=CellOrder)


def unpack_state(data: bytes) -> NodeState:
    """A worker's word."""
    return msgspec.msgpack.decode(data, type=NodeState)


def boot_id() -> str:
    """Tells machines apart whose monotonic clocks have nothing in common; empty where the kernel has none."""
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""
