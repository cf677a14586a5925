"""What a run tells while it is measured, from the files that grow in its folder."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loadgen.report.words import clean
from loadgen.service.model import Point, Running
from loadgen.service.runsfolder import PROGRESS

MAX_NOTICES = 30


class Tail:
    """The whole lines that a growing file got since the last look."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = 0

    def facts(self) -> Iterator[dict[str, Any]]:
        """The new lines that hold a JSON object; others (a warning on stderr, a torn line) are passed over."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._read)
                data = file.read()
        except OSError:
            return
        whole = data[: data.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            try:
                fact = json.loads(line)
            except ValueError:
                continue
            if isinstance(fact, dict):
                yield fact


class Live:
    """A run's cells so far and what happens now. Files are read on from where the last `poll` ended."""

    def __init__(self, folder: Path) -> None:
        self._progress = Tail(folder / PROGRESS)
        self._cells = Tail(folder / "cells.jsonl")
        self.cells = 0
        self.planned: int | None = None
        """Cells of the whole run as its sweep counts them; refining adds some."""
        self.running: Running | None = None
        self.remaining_s: float | None = None
        self.servers: dict[str, str] = {}
        self.notices: list[str] = []

    def poll(self) -> list[Point]:
        """The cells that ended since the last call; the other facts are brought up to date."""
        for fact in self._progress.facts():
            self._take(fact)
        points = [point for fact in self._cells.facts() if (point := _point(fact)) is not None]
        self.cells += len(points)
        return points

    def _take(self, fact: dict[str, Any]) -> None:
        match fact.get("event"):
            case "sweep_started":
                self.running, self.servers = None, {}
                self.remaining_s = _number(fact.get("estimate_s"))
            case "server":
                self.servers[clean(fact.get("profile"))] = clean(fact.get("phase"))
            case "cell_started":
                self.planned = int(fact.get("total") or 0) or None
                self.running = _running(fact, {"phase": "warm-up"})
            case "cell_progress":
                self.running = _running(fact, fact.get("load") or {})
            case "cell_finished":
                self.running, self.remaining_s = None, _number(fact.get("remaining_s"))
            case "cell_failed":
                self.running = None
                self._note(f"A cell failed: {clean(fact.get('reason'))}")
            case "notice":
                self._note(clean(fact.get("text")))

    def _note(self, text: str) -> None:
        if text not in self.notices:
            self.notices = [*self.notices, text][-MAX_NOTICES:]


def _running(fact: dict[str, Any], load: dict[str, Any]) -> Running:
    key = fact.get("key") or {}
    return Running(
        profile=clean(key.get("profile")),
        workload=clean((key.get("condition") or {}).get("workload")),
        level=int(key.get("level") or 0),
        repeat=int(key.get("repeat") or 0),
        phase=clean(load.get("phase")),
        elapsed_s=_number(load.get("elapsed_s")) or 0.0,
        tokens_per_s=_number(load.get("tokens_per_s")),
        in_flight=int(load.get("in_flight") or 0),
    )


def _point(cell: dict[str, Any]) -> Point | None:
    try:
        key, condition = cell["key"], cell["key"]["condition"]
        return Point(
            profile=clean(key["profile"]),
            workload=clean(condition["workload"]),
            input_tokens=condition["input_tokens"],
            temperature=condition["temperature"],
            level=key["level"],
            repeat=key["repeat"],
            session=key.get("session", 0),
            tokens_per_s=_number(cell["output_tokens_per_s"]),
            ttft_p50_s=_number(cell["ttft_s"].get("p50")),
            tpot_p50_s=_number(cell["tpot_s"].get("p50")),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
