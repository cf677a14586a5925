"""Rows of the list of runs, kept as long as their files do not change."""

import json
import os
import threading
from pathlib import Path
from typing import Any

from loadgen.errors import LoadgenError
from loadgen.report.words import clean
from loadgen.service.model import RunRow
from loadgen.service.runsfolder import PAGES, SVG, RunsFolder
from loadgen.service.state import RunState, standing
from loadgen.store.folder import RunFolder

_WATCHED = ("manifest.json", "events.jsonl", "cells.jsonl", "summary.json", "lock")


class Rows:
    """Reads runs into rows; called from several threads."""

    def __init__(self, runs: RunsFolder) -> None:
        self._runs = runs
        self._kept: dict[str, tuple[object, RunRow]] = {}
        self._lock = threading.Lock()

    def all(self) -> tuple[list[RunRow], list[str]]:
        """(rows, newest first; names of runs that cannot be read)."""
        rows: list[RunRow] = []
        unreadable: list[str] = []
        for name in self._runs.names():
            try:
                rows.append(self.row(name))
            except LoadgenError:
                unreadable.append(name)
        rows.sort(key=lambda row: (row.created_at, row.run), reverse=True)
        return rows, unreadable

    def row(self, name: str) -> RunRow:
        """The run's row. 404 if there is none; UsageError if its manifest cannot be read."""
        folder = self._runs.folder(name)
        signature = _signature(folder.path)
        kept = self._kept.get(name)
        if kept is None or kept[0] != signature or kept[1].state is RunState.RUNNING:
            kept = (signature, _read(folder))
            with self._lock:
                self._kept[name] = kept
        return kept[1].model_copy()


def _read(folder: RunFolder) -> RunRow:
    manifest = folder.manifest()
    now = standing(folder)
    answer, indicative = _answer(folder.path / "summary.json")
    cells = _count_lines(folder.path / "cells.jsonl")
    planned = len(manifest.profiles) * len(manifest.conditions) * len(manifest.levels)
    return RunRow(
        run=folder.run_id,
        created_at=manifest.created_at,
        state=now.state,
        reason=clean(now.reason),
        engine=manifest.engine,
        simulated=manifest.simulated,
        quick=manifest.quick,
        profiles=list(manifest.profiles),
        against=manifest.against,
        workloads=list(dict.fromkeys(c.workload for c in manifest.conditions)),
        levels=list(manifest.levels),
        repeats=manifest.repeats,
        cells=cells,
        # Refining measures more than was planned at first.
        cells_planned=max(planned * manifest.repeats * manifest.sessions, cells),
        answer=answer,
        indicative=indicative,
        files=sorted(e.name for e in os.scandir(folder.path) if e.name in PAGES or SVG.fullmatch(e.name)),
    )


def _answer(path: Path) -> tuple[str | None, bool]:
    """(the answer's sentence, True if one of its verdicts is indicative only)."""
    try:
        summary: dict[str, Any] = json.loads(path.read_bytes())
        verdicts = [
            found
            for condition in summary["conditions"]
            for profile in condition["profiles"].values()
            for found in profile["break_even"].values()
        ]
        return clean(summary["answer"]), any(found.get("indicative") for found in verdicts)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None, False


def _signature(folder: Path) -> tuple[object, ...]:
    def of(name: str) -> object:
        try:
            facts = (folder / name).stat()
        except OSError:
            return None
        return facts.st_mtime_ns, facts.st_size

    return tuple(of(name) for name in _WATCHED)


def _count_lines(path: Path) -> int:
    try:
        return path.read_bytes().count(b"\n")
    except OSError:
        return 0
