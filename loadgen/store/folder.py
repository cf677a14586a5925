"""The run folder: where everything measured goes as soon as it is known."""

import gzip
import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from loadgen.clock import utc_now
from loadgen.errors import UsageError
from loadgen.load.record import RequestRecord
from loadgen.metrics.model import CounterDelta, GaugeSample, HistogramDelta
from loadgen.store.codec import decode, encode
from loadgen.store.jsonl import Appender, read, unwritable
from loadgen.store.model import SCHEMA, CellKey, CellResult, Manifest, ServerFacts
from loadgen.store.requests import StoredRequest, pack, read_requests

RUNS = Path("runs")


@dataclass(frozen=True)
class StoredGauge:
    """One line of gauges.jsonl."""

    cell: CellKey
    sample: GaugeSample


@dataclass(frozen=True)
class StoredEvent:
    """One line of events.jsonl: what happened in a run, for a person who asks later."""

    at: str
    kind: str
    text: str
    details: dict[str, Any] = field(default_factory=dict)


class RunFolder:
    """A run's files. Reading needs no lock; a writer holds `FolderLock` and closes the folder when done."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files: dict[str, Appender] = {}

    @property
    def run_id(self) -> str:
        """The folder's name."""
        return self.path.name

    # Writing

    def write_manifest(self, manifest: Manifest) -> None:
        """manifest.json, replaced as a whole."""
        write_whole(self.path / "manifest.json", encode(manifest) + b"\n")

    def append_cell(self, cell: CellResult) -> None:
        """One line of cells.jsonl, on the disk when this returns: a cell costs seconds of a GPU."""
        file = self._file("cells.jsonl")
        file.append(_storable(cell))
        file.sync()

    def append_request(self, cell: CellKey, record: RequestRecord, phase: str = "measure") -> None:
        """One line of requests.jsonl."""
        self._file("requests.jsonl").append(pack(cell, record, phase))

    def append_gauges(self, cell: CellKey, samples: tuple[GaugeSample, ...]) -> None:
        """Lines of gauges.jsonl."""
        self._file("gauges.jsonl").append(*(StoredGauge(cell, sample) for sample in samples))

    def append_event(self, kind: str, text: str, **details: object) -> None:
        """One line of events.jsonl."""
        self._file("events.jsonl").append(StoredEvent(utc_now(), kind, text, details))

    def append_server(self, server: ServerFacts) -> None:
        """One line of servers.jsonl: a server that came up."""
        self._file("servers.jsonl").append(server)

    def write_scrape(self, cell: CellKey, moment: str, body: bytes) -> None:
        """One `/metrics` body as it came, compressed."""
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", str(cell))
        path = self.path / "scrapes" / f"{name}-{moment}.txt.gz"
        try:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(gzip.compress(body, compresslevel=3))
        except OSError as error:
            raise unwritable(path, error) from error

    def profile_path(self, name: str) -> Path:
        """Where a profile's file goes as it is started."""
        return self._inside("profiles", f"{name}.yaml")

    def log_path(self, name: str) -> Path:
        """Where a server's output goes."""
        return self._inside("servers", f"{name}.log")

    def close(self) -> None:
        """Closes the files; the folder can be read on."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    # Reading

    def manifest(self) -> Manifest:
        """manifest.json; UsageError if the folder holds no run."""
        path = self.path / "manifest.json"
        if not path.exists():
            raise UsageError(f"{self.path} holds no run (manifest.json is missing); `loadgen runs` lists the runs.")
        try:
            found = decode(path.read_bytes(), Manifest)
        except ValueError as error:
            raise UsageError(
                f"{path} cannot be read ({error}): damaged, or from another version of loadgen; repair or remove it."
            ) from error
        if found.schema != SCHEMA:
            raise UsageError(
                f"{path} is of schema {found.schema} and this loadgen reads schema {SCHEMA}: read it with the loadgen "
                f"that wrote it ({found.loadgen_version})."
            )
        return found

    def cells(self) -> tuple[CellResult, ...]:
        """The measured cells in the order in which they ended; of a cell that stands twice, the first."""
        seen: dict[CellKey, CellResult] = {}
        path = self.path / "cells.jsonl"
        for number, cell in enumerate(read(path, CellResult), 1):
            if cell.key.level < 1:
                raise UsageError(
                    f"{path}:{number} has a cell at {cell.key.level} concurrent requests; remove that line."
                )
            seen.setdefault(cell.key, cell)
        return tuple(seen.values())

    def servers(self) -> tuple[ServerFacts, ...]:
        """The servers that came up, in order."""
        return tuple(read(self.path / "servers.jsonl", ServerFacts))

    def requests(self, cell: CellKey | None = None) -> Iterator[StoredRequest]:
        """The stored requests, of one cell if given."""
        return read_requests(self.path / "requests.jsonl", cell)

    def gauges(self) -> Iterator[StoredGauge]:
        """The stored gauges."""
        return read(self.path / "gauges.jsonl", StoredGauge)

    def events(self) -> Iterator[StoredEvent]:
        """The stored events."""
        return read(self.path / "events.jsonl", StoredEvent)

    def _file(self, name: str) -> Appender:
        if name not in self._files:
            self._files[name] = Appender(self.path / name)
        return self._files[name]

    def _inside(self, folder: str, name: str) -> Path:
        (self.path / folder).mkdir(exist_ok=True)
        return self.path / folder / name


def _storable(cell: CellResult) -> CellResult:
    """The cell without its histograms' +inf buckets: JSON has no infinity, and each one equals its `count`."""

    def finite(delta: CounterDelta | None) -> CounterDelta | None:
        if delta is None:
            return None
        changes: dict[str, Any] = {
            item.name: replace(value, buckets=tuple(b for b in value.buckets if math.isfinite(b[0])))
            for item in fields(delta)
            if isinstance(value := getattr(delta, item.name), HistogramDelta)
        }
        return replace(delta, **changes)

    return replace(cell, window=finite(cell.window), idle=finite(cell.idle))


def create_run(label: str, runs: Path = RUNS) -> RunFolder:
    """A new, empty run folder `2026-11-29T16-20-00Z-label`; a name that is taken gets a number."""
    stamp = utc_now()[:19].replace(":", "-") + "Z"
    name = f"{stamp}-{re.sub(r'[^A-Za-z0-9._-]+', '-', label)}"
    for suffix in ("", *(f"-{n}" for n in range(2, 1000))):
        path = runs / f"{name}{suffix}"
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise UsageError(f"{path} cannot be made ({error.strerror}); choose another folder with --runs.") from error
        return RunFolder(path)
    raise UsageError(f"{runs / name} is taken a thousand times over; wait a second and start again.")


def list_runs(runs: Path = RUNS) -> list[RunFolder]:
    """The folders that hold a run, oldest first; `unreadable_runs` has those that cannot be read."""
    return [run for _, run in sorted(_look(runs)[0], key=lambda found: (found[0], found[1].run_id))]


def unreadable_runs(runs: Path = RUNS) -> dict[str, UsageError]:
    """Folder name → why its manifest cannot be read: one damaged run must not hide the others, nor vanish."""
    return _look(runs)[1]


def _look(runs: Path) -> tuple[list[tuple[str, RunFolder]], dict[str, UsageError]]:
    found: list[tuple[str, RunFolder]] = []
    unreadable: dict[str, UsageError] = {}
    for path in sorted(runs.iterdir()) if runs.is_dir() else ():
        if (path / "manifest.json").is_file():
            run = RunFolder(path)
            try:
                found.append((run.manifest().created_at, run))
            except UsageError as error:
                unreadable[path.name] = error
    return found, unreadable


def find_run(name: str, runs: Path = RUNS) -> RunFolder:
    """The run of that name: a path, a folder's name under `runs`, or `latest`; UsageError names what there is."""
    if name == "latest":
        there = list_runs(runs)
        # Names begin with the time: an older run in the place of a newer, damaged one would be the wrong answer.
        for damaged, error in unreadable_runs(runs).items():
            if not there or damaged > there[-1].run_id:
                raise error
        if not there:
            raise UsageError(f"There is no run under {runs}/ yet; `make sweep PROFILE=ngram` makes one.")
        return there[-1]
    for path in (Path(name), runs / name):
        if (path / "manifest.json").is_file():
            return RunFolder(path)
        if (path / "lossless" / "request.json").is_file():
            raise UsageError(
                f"{name} is a run of loadgen lossless, which has no cells; only loadgen report and loadgen lossless "
                "--resume take it."
            )
    known = ", ".join(run.run_id for run in list_runs(runs)[-3:]) or "none yet"
    raise UsageError(f"{name} is no run; give a run folder, its name under {runs}/, or latest (newest here: {known}).")


def write_whole(path: Path, data: bytes) -> Path:
    """The path; the file holds `data`, or what it held before. UsageError if that is not possible."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        reason = error.strerror or error
        raise UsageError(f"{path} cannot be written ({reason}); free some space, or choose another folder.") from error
    return path
