"""What state a run is in, read from its folder alone: a service that was killed finds all of it again."""

import contextlib
import json
import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from loadgen.store.folder import RunFolder, StoredEvent


class RunState(StrEnum):
    """Where a run stands."""

    QUEUED = "queued"
    RUNNING = "running"
    STOPPING = "stopping"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"
    """Ended before its plan was carried out; `reason` says why, and it can go on."""


ENDED = frozenset({RunState.COMPLETED, RunState.CANCELLED, RunState.INTERRUPTED})
STATE_EVENTS = ("queued", "started", "interrupted", "completed", "cancelled")


@dataclass(frozen=True)
class Standing:
    """A run's state by its events, and who is at work on it."""

    last: str | None
    """The last of STATE_EVENTS; None for a folder in which nothing was begun."""
    at: str
    reason: str
    asked_here: bool
    """True if a service queued it; then a service may go on with it."""
    sweep_pid: int | None
    """The process that measures it now."""

    @property
    def state(self) -> RunState:
        """The state, as far as the folder tells it."""
        if self.sweep_pid is not None:
            return RunState.RUNNING
        by_event = {
            "queued": RunState.QUEUED,
            "completed": RunState.COMPLETED,
            "cancelled": RunState.CANCELLED,
        }
        return by_event.get(self.last or "", RunState.INTERRUPTED)


def standing(folder: RunFolder) -> Standing:
    """How the run stands; events that cannot be read are passed over."""
    events: list[StoredEvent] = []
    with contextlib.suppress(ValueError, OSError):
        # A fault in the middle still leaves the events before it.
        events.extend(event for event in folder.events() if event.kind in STATE_EVENTS)
    last = events[-1] if events else None
    pid = sweep_pid(folder.path)
    reason = last.text if last and last.kind == "interrupted" else ""
    if last and last.kind == "started":
        reason = "its process was killed"
    return Standing(
        last=last.kind if last else None,
        at=last.at if last else "",
        reason=reason if pid is None else "",
        asked_here=any(event.kind == "queued" for event in events),
        sweep_pid=pid,
    )


def sweep_pid(folder: Path) -> int | None:
    """The process that holds the run's lock, if it lives and is a sweep.

    Read from the lock's text: trying the lock itself could make a sweep that is just starting fail.
    """
    try:
        word, _, number = (folder / "lock").read_text(encoding="ascii", errors="replace").strip().partition(" ")
        if word != "process":
            return None
        pid = int(number)
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return pid if b"sweep" in command and _alive(pid) else None


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def resources(settings: dict[str, Any], engine: str) -> frozenset[str]:
    """What a run takes for itself: `machine` (the simulator), the GPUs that it sees, or the servers that it loads."""
    if engine == "simulator":
        return frozenset({"machine"})
    if engine == "url":
        url = str((settings.get("engine") or {}).get("url") or "")
        return frozenset(part.rpartition("=")[2].strip() for part in url.split(",") if part.strip())
    shown = [
        text.partition("=")[2]
        for text in (settings.get("request") or {}).get("server_env") or ()
        if text.startswith("CUDA_VISIBLE_DEVICES=")
    ]
    if not shown:
        return frozenset({"all-gpus"})
    return frozenset(f"gpu-{number.strip()}" for number in shown[-1].split(","))


def collide(one: frozenset[str], other: frozenset[str]) -> bool:
    """True if two runs cannot be measured at once."""
    gpus = any(name.startswith("gpu-") for name in one | other)
    return bool(one & other) or ("all-gpus" in one | other and gpus)


def last_words(path: Path) -> str:
    """The last line of a sweep's stderr that is no progress: its one sentence of error; empty if there is none."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 16384))
        for line in reversed(file.read().decode("utf-8", "replace").splitlines()):
            text = line.strip()
            if text and not _is_json(text):
                return text.removeprefix("loadgen: ")[:500]
    return ""


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
