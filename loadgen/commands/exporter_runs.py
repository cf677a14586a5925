"""The runs folder as Prometheus metrics. A sweep that runs anywhere shows, as long as its folder lies there."""

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from loadgen.commands.conclude import STATES, find_findings
from loadgen.commands.exporter_tail import RequestTail, read_summary
from loadgen.errors import LoadgenError
from loadgen.report.exported import EXPORTED, Shown, shown_findings
from loadgen.report.summary import summary
from loadgen.store.folder import RunFolder
from loadgen.store.model import CellResult, Manifest

NEWEST_RUNS = 10
"""Runs that are shown; older ones come with `loadgen replay`."""
QUIET_S = 120.0
"""A started run that writes nothing for this long counts as dead, not as active."""


@dataclass
class _Seen:
    """One run as it was last read: nothing is read again before its files change."""

    folder: RunFolder
    manifest: Manifest
    tail: RequestTail
    state: str = "started"
    failed: int = 0
    cells: tuple[CellResult, ...] = ()
    findings: list[Shown] = field(default_factory=list)
    model: str = ""
    stamp: tuple[float, ...] = ()
    cell_seen_at: dict[str, float] = field(default_factory=dict)
    analysis: "Future[dict[str, Any] | None] | None" = None

    def take(self, found: Mapping[str, Any] | None) -> None:
        """Shows this summary from now on."""
        if found is not None:
            self.findings, self.model = shown_findings(found), str(found.get("model") or "")


class RunsCollector(Collector):
    """Gives the metrics of the newest runs under a folder; the live ones of the newest alone."""

    def __init__(self, runs: Path) -> None:
        self._runs = runs
        self._seen: dict[str, _Seen] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="exporter")

    def describe(self) -> Iterable[Metric]:
        """Nothing: registering must not read the folder."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """The metrics now."""
        with self._lock:
            runs = self._refresh()
            newest = runs[-1] if runs else None
            shown = [one for run in runs for one in _shown(run, run is newest)]
            yield from gauge_families(shown)
            if newest is not None:
                yield from _live(newest)

    def _refresh(self) -> list[_Seen]:
        # A link could lead out of the runs folder, and the service shows these figures over HTTP.
        folders = (path.parent for path in self._runs.glob("*/manifest.json") if not path.parent.is_symlink())
        names = sorted(folder.name for folder in folders)[-NEWEST_RUNS:]
        self._seen = {name: self._seen.get(name) or made for name in names if (made := self._open(name)) is not None}
        for name, run in self._seen.items():
            _read(run, self._pool, is_newest=name == names[-1])
        return list(self._seen.values())

    def _open(self, name: str) -> _Seen | None:
        if name in self._seen:
            return self._seen[name]
        folder = RunFolder(self._runs / name)
        try:
            manifest = folder.manifest()
        except LoadgenError:
            return None
        tail = RequestTail(folder.path / "requests.jsonl")
        tail.expect(
            (profile, condition.workload, str(level))
            for profile in manifest.profiles
            for condition in manifest.conditions
            for level in manifest.levels
        )
        return _Seen(folder, manifest, tail)


def exposition(collector: RunsCollector) -> bytes:
    """The body of `/metrics`, in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return generate_latest(registry)


def gauge_families(shown: Sequence[Shown]) -> Iterator[Metric]:
    """The samples as metric families with their help texts."""
    for metric in EXPORTED:
        mine = [one for one in shown if one.name == metric.name]
        if metric.kind != "gauge" or not mine:
            continue
        labels = list(dict.fromkeys(label for one in mine for label in one.labels))
        family = GaugeMetricFamily(metric.name, metric.help, labels=labels)
        for one in mine:
            family.add_metric([one.labels.get(label, "") for label in labels], one.value)
        yield family


def _read(run: _Seen, pool: Executor, *, is_newest: bool) -> None:
    path = run.folder.path
    if is_newest:
        run.tail.look()
    if run.analysis is not None and run.analysis.done():
        run.take(run.analysis.result())
        run.analysis = None
    stamp = tuple(_mtime(path / name) for name in ("cells.jsonl", "events.jsonl", "summary.json"))
    if stamp == run.stamp or run.analysis is not None:
        return
    run.stamp = stamp
    try:
        events = list(run.folder.events())
        run.cells = run.folder.cells()
    except (LoadgenError, ValueError):
        return  # a line in the making, or a run of another version: what was read before stays
    states = [event.kind for event in events if event.kind in STATES]
    run.state = states[-1] if states else "started"
    run.failed = sum(event.kind == "cell-failed" for event in events)
    found = read_summary(path / "summary.json") if stamp[2] >= stamp[0] else None
    if found is not None:
        run.take(found)
    elif run.cells:
        run.analysis = pool.submit(_analyse, run.folder, run.manifest)


def _analyse(folder: RunFolder, manifest: Manifest) -> dict[str, Any] | None:
    """The summary of a run that has none yet; a thread's work, since a scrape must not wait for it."""
    try:
        return summary(find_findings(folder), manifest)
    except (LoadgenError, ValueError):
        return None


def _shown(run: _Seen, is_newest: bool) -> list[Shown]:
    me = {"run": run.folder.run_id}
    manifest = run.manifest
    planned = len(manifest.profiles) * len(manifest.conditions) * len(manifest.levels)
    info = {
        "engine": manifest.engine,
        "simulated": str(manifest.simulated).lower(),
        "profiles": ",".join(manifest.profiles),
        "against": manifest.against,
        "model": run.model,
        "state": run.state,
    }
    active = _is_active(run)
    found = [
        Shown("loadgen_run_info", {**me, **info}, 1.0),
        Shown("loadgen_run_started_timestamp_seconds", me, _unix(manifest.created_at)),
        Shown("loadgen_run_newest", me, float(is_newest)),
        Shown("loadgen_run_active", me, float(active)),
        Shown("loadgen_run_cells_planned", me, float(planned * manifest.repeats * manifest.sessions)),
        Shown("loadgen_run_cells_measured", me, float(len(run.cells))),
        Shown("loadgen_run_cells_failed", me, float(run.failed)),
        *run.findings,
        *shown_cells(run.folder.run_id, run.cells),
    ]
    return found + (_current(run) if active and is_newest else [])


def _current(run: _Seen) -> list[Shown]:
    """The cell in the making: known from its first request on, since the folder holds cells that have ended."""
    cell = run.tail.last_cell
    if cell is None or any(done.key == cell for done in run.cells):
        return []
    condition = cell.condition
    labels = {"run": run.folder.run_id, "profile": cell.profile, "workload": condition.workload}
    began = run.cell_seen_at.setdefault(str(cell), time.time())
    here = {**labels, "input_tokens": str(condition.input_tokens), "temperature": f"{condition.temperature:g}"}
    here |= {"concurrency": str(cell.level), "repeat": f"{cell.session}.{cell.repeat}"}
    return [
        Shown("loadgen_current_concurrency", labels, float(cell.level)),
        Shown("loadgen_cell_started_timestamp_seconds", here, began),
    ]


def shown_cells(run: str, cells: Sequence[CellResult]) -> list[Shown]:
    """When each cell began, and the client's health per profile, workload and level: its worst cell."""
    found: list[Shown] = []
    worst: dict[tuple[str, ...], dict[str, float]] = {}
    for cell in cells:
        key = cell.key
        where = (key.profile, key.condition.workload, str(key.level))
        labels = {"run": run, "profile": where[0], "workload": where[1], "concurrency": where[2]}
        labels |= {"input_tokens": str(key.condition.input_tokens), "temperature": f"{key.condition.temperature:g}"}
        labels["repeat"] = f"{key.session}.{key.repeat}"
        found.append(Shown("loadgen_cell_started_timestamp_seconds", labels, _unix(cell.started_at)))
        client = cell.client
        values = {
            "loadgen_client_loop_lag_p99_seconds": client.loop_lag_p99_s,
            "loadgen_client_cpu_cores": client.cpu_share,
            "loadgen_client_coalesced_ratio": client.zero_gap_share,
            "loadgen_client_lockstep": client.lockstep,
            "loadgen_stolen_cpu_ratio": cell.steal_share or 0.0,
        }
        kept = worst.setdefault(where, {"loadgen_client_in_flight": client.in_flight_mean})
        kept["loadgen_client_in_flight"] = min(kept["loadgen_client_in_flight"], client.in_flight_mean)
        kept.update({name: max(kept.get(name, 0.0), value) for name, value in values.items()})
    for (profile, workload, level), figures in worst.items():
        labels = {"run": run, "profile": profile, "workload": workload, "concurrency": level}
        found += [Shown(name, labels, value) for name, value in figures.items()]
    return found


def _live(run: _Seen) -> Iterator[Metric]:
    """Counters and histograms of the requests so far."""
    help_of = {metric.name: metric.help for metric in EXPORTED}
    labels = ["run", "profile", "workload", "concurrency"]
    me = run.folder.run_id
    requests = CounterMetricFamily(
        "loadgen_requests", help_of["loadgen_requests"], labels=[*labels, "phase", "outcome"]
    )
    for (key, phase, outcome), count in run.tail.outcomes.items():
        requests.add_metric([me, *key, phase, outcome], count)
    tokens = CounterMetricFamily("loadgen_output_tokens", help_of["loadgen_output_tokens"], labels=labels)
    for key, count in run.tail.tokens.items():
        tokens.add_metric([me, *key], count)
    yield requests
    yield tokens
    for name, by_key in run.tail.histograms.items():
        family = HistogramMetricFamily(name, help_of[name], labels=labels)
        for key, counts in by_key.items():
            family.add_metric([me, *key], counts.cumulative(), counts.total)
        yield family


def _is_active(run: _Seen) -> bool:
    names = ("requests.jsonl", "events.jsonl", "cells.jsonl")
    return run.state == "started" and time.time() - max(_mtime(run.folder.path / name) for name in names) < QUIET_S


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _unix(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()
