"""What a load process and its parent tell each other: frames of msgpack on its standard input and output."""

import struct

import msgspec

from loadgen.load.record import RequestRecord
from loadgen.load.target import Target
from loadgen.workloads.base import Prompt

_LENGTH = struct.Struct("<I")
HEAD_SIZE = _LENGTH.size


class Job(msgspec.Struct, tag=True, frozen=True):
    """A new load: where to and with which prompts. Nothing is sent before `Users`."""

    target: Target
    prompts: tuple[Prompt, ...]
    numbers: tuple[int, int] = (0, 1)
    """Worker k of this process is worker `first + k * step` of all processes."""
    stream_s: float | None = None
    """Records are decoded and sent this often; None sends them at the end, so that decoding delays no stamp."""


class Users(msgspec.Struct, tag=True, frozen=True):
    """That many requests in flight from now on. Those who are too many end after their request."""

    count: int
    start_s: float = 0.0
    """When the first of the new ones starts (monotonic clock)."""
    every_s: float = 0.0
    """… and how long after it each other one."""


class Window(msgspec.Struct, tag=True, frozen=True):
    """The window opens, or closes: CPU time and lag are taken between the two."""

    opens: bool


class Stop(msgspec.Struct, tag=True, frozen=True):
    """The load ends: after the requests in flight, or at once."""

    at_once: bool = False


class Up(msgspec.Struct, tag=True, frozen=True):
    """The process is ready for a job."""


class Progress(msgspec.Struct, tag=True, frozen=True):
    """The state of the load, ten times a second."""

    in_flight: int
    holding: int
    """Workers that have sent a request."""
    finished: int
    failed: int
    tokens: int
    """Tokens so far, about."""
    exhausted: bool
    """The prompts have run out."""


class Record(msgspec.Struct, tag=True, frozen=True):
    """One request, decoded."""

    record: RequestRecord


class Ended(msgspec.Struct, tag=True, frozen=True):
    """The load is over, and every record was sent."""

    loop_lag_p99_s: float
    cpu_s: float
    """Between the window's edges."""


class Fault(msgspec.Struct, tag=True, frozen=True):
    """The load broke for a reason of the client's own."""

    text: str


ToChild = Job | Users | Window | Stop
ToParent = Up | Progress | Record | Ended | Fault

_ENCODER = msgspec.msgpack.Encoder()
_TO_CHILD = msgspec.msgpack.Decoder(ToChild)
_TO_PARENT: msgspec.msgpack.Decoder[ToParent] = msgspec.msgpack.Decoder(ToParent)


def frame(message: ToChild | ToParent) -> bytes:
    """The message with its length before it."""
    data = _ENCODER.encode(message)
    return _LENGTH.pack(len(data)) + data


def length_of(head: bytes) -> int:
    """Bytes of the message that follows these HEAD_SIZE ones."""
    return int(_LENGTH.unpack(head)[0])


def for_child(data: bytes) -> ToChild:
    """The message of a frame from the parent; msgspec.DecodeError for anything else."""
    return _TO_CHILD.decode(data)


def for_parent(data: bytes) -> ToParent:
    """The message of a frame from a load process; msgspec.DecodeError for anything else."""
    return _TO_PARENT.decode(data)
