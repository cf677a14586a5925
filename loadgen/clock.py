"""The one clock of the house."""

import time
from datetime import UTC, datetime


def now_s() -> float:
    """Seconds on the monotonic clock; comparable between processes of one machine, never with the wall clock."""
    return time.monotonic()


def utc_now() -> str:
    """The wall-clock time in UTC as `2026-11-29T16:20:00.123Z`; for labels only, never for differences."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
