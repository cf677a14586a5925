"""A finished run as time series: what Prometheus would have scraped, had it watched.

A cell keeps four scrapes. Between two of them the server's counters are drawn straight, a point a second, so that
`rate()` gives the mean of that stretch: true to the run's own figures, blind to what happened inside it.
"""

import gzip
import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from loadgen.commands.exporter_runs import shown_cells
from loadgen.commands.exporter_tail import BUCKETS, Counts, Key
from loadgen.commands.replay_write import Series
from loadgen.metrics import names
from loadgen.metrics.parse import parse
from loadgen.report.exported import Shown
from loadgen.store.folder import RunFolder
from loadgen.store.model import CellKey, CellResult, Manifest

JOB = "replay"
FINDINGS_STEP_S = 15
MOMENTS = ("idle-before", "window-open", "window-close", "idle-after")
_HISTOGRAMS = (
    *names.INTER_TOKEN_LATENCY,
    *names.ITERATION_TOKENS,
    *names.TIME_TO_FIRST_TOKEN,
    *names.TIME_PER_OUTPUT_TOKEN,
    *names.E2E_LATENCY,
    *names.QUEUE_TIME,
)
_COUNTERS = (
    *names.GENERATION_TOKENS,
    *names.PROMPT_TOKENS,
    *names.DRAFTS,
    *names.DRAFT_TOKENS,
    *names.ACCEPTED_TOKENS,
    *names.ACCEPTED_PER_POSITION,
    *names.PREEMPTIONS,
    *names.PREFIX_CACHE_QUERIES,
    *names.PREFIX_CACHE_HITS,
    *names.REQUESTS_FINISHED,
)
REPLAYED = frozenset(_COUNTERS) | {f"{name}{end}" for name in _HISTOGRAMS for end in ("_bucket", "_sum", "_count")}

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class CellTimes:
    """When a cell's four scrapes were taken, in Unix seconds, and what its monotonic clock must be moved by."""

    at: Mapping[str, float]
    shift_s: float
    model: str


class Book:
    """The series so far, by name and labels."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, Labels], dict[int, float]] = {}

    def add(self, name: str, labels: Mapping[str, str], at_s: float, value: float) -> None:
        """One sample; of two at the same millisecond the later one stays."""
        self._series.setdefault((name, tuple(sorted(labels.items()))), {})[round(at_s * 1000)] = value

    def series(self) -> list[Series]:
        """All of them, each in the order of time."""
        return [Series(name, dict(labels), sorted(points.items())) for (name, labels), points in self._series.items()]


def replay_series(folder: RunFolder, shown: list[Shown]) -> list[Series]:
    """The run's series: its servers', and loadgen's own with these findings."""
    book = Book()
    manifest, cells = folder.manifest(), sorted(folder.cells(), key=lambda cell: cell.started_at)
    times: dict[CellKey, CellTimes] = {}
    first_gauge: dict[CellKey, float] = {}
    for gauge in folder.gauges():
        first_gauge.setdefault(gauge.cell, gauge.sample.at_s)
    by_server: dict[tuple[str, int, int], list[tuple[float, Mapping[tuple[str, Labels], float]]]] = {}
    for cell in cells:
        scrapes = _read_scrapes(folder.path, cell.key)
        if len(scrapes) < len(MOMENTS):
            continue
        at = _moments(cell, {moment: stamp for moment, (stamp, _) in scrapes.items()})
        model = next((dict(labels).get("model_name", "") for (_, labels) in scrapes["idle-after"][1]), "")
        times[cell.key] = CellTimes(at, at["idle-before"] - first_gauge.get(cell.key, 0.0), model)
        server = by_server.setdefault((cell.key.profile, cell.key.session, cell.server_start), [])
        server += [(at[moment], scrapes[moment][1]) for moment in MOMENTS]
    for (profile, _, _), looks in by_server.items():
        _draw(book, profile, sorted(looks, key=lambda look: look[0]))
    _gauges(book, folder, times)
    _requests(book, folder, times)
    _run(book, manifest, cells, times, shown)
    return book.series()


def run_info(manifest: Manifest, model: str) -> Shown:
    """The sample that names the run."""
    labels = {
        "run": manifest.run_id,
        "engine": manifest.engine,
        "simulated": str(manifest.simulated).lower(),
        "profiles": ",".join(manifest.profiles),
        "against": manifest.against,
        "model": model,
        "state": "replayed",
    }
    return Shown("loadgen_run_info", labels, 1.0)


def _read_scrapes(path: Path, key: CellKey) -> dict[str, tuple[float, dict[tuple[str, Labels], float]]]:
    """Moment → (Unix second at which it was written, samples)."""
    found = {}
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", str(key))
    for moment in MOMENTS:
        file = path / "scrapes" / f"{name}-{moment}.txt.gz"
        if not file.exists():
            continue
        with gzip.open(file, "rb") as body:
            snapshot = parse(body.read(), only=REPLAYED)
            stamp = float(body.mtime or 0)
        samples = {
            (metric, tuple(sorted(sample.labels.items()))): sample.value
            for metric, rows in snapshot.samples.items()
            for sample in rows
        }
        found[moment] = (stamp, samples)
    return found


def _moments(cell: CellResult, stamps: Mapping[str, float]) -> dict[str, float]:
    """The times of the four scrapes: files know the second, the cell's own durations what lies between exactly."""
    after = stamps["idle-after"]
    before = after - cell.idle.duration_s if cell.idle else stamps["idle-before"]
    window = cell.window.duration_s if cell.window else stamps["window-close"] - stamps["window-open"]
    opened = min(max(stamps["window-open"], before), max(after - window, before))
    return {
        "idle-before": before,
        "window-open": opened,
        "window-close": min(opened + window, after),
        "idle-after": after,
    }


def _draw(book: Book, profile: str, looks: list[tuple[float, Mapping[tuple[str, Labels], float]]]) -> None:
    """A server's counters, a point a second; where one fell the server began anew, and nothing is drawn."""
    for (from_s, before), (to_s, after) in pairwise(looks):
        for key, value in after.items():
            start = before.get(key)
            if start is None or value < start or to_s <= from_s:
                continue
            name, labels = key
            here = {**dict(labels), "job": JOB, "instance": profile}
            for second in range(int(from_s) + 1, int(to_s) + 1):
                book.add(name, here, second, start + (value - start) * (second - from_s) / (to_s - from_s))


def _gauges(book: Book, folder: RunFolder, times: Mapping[CellKey, CellTimes]) -> None:
    for gauge in folder.gauges():
        cell = times.get(gauge.cell)
        if cell is None:
            continue
        here = {"job": JOB, "instance": gauge.cell.profile, "model_name": cell.model, "engine": "0"}
        look = gauge.sample
        values = (
            ("vllm:num_requests_running", look.running),
            ("vllm:num_requests_waiting", look.waiting),
            ("vllm:kv_cache_usage_perc", look.kv_cache_usage),
        )
        for name, value in values:
            if value is not None:
                book.add(name, here, look.at_s + cell.shift_s, value)
    for key, cell in times.items():
        here = {"job": JOB, "instance": key.profile, "model_name": cell.model, "engine": "0"}
        book.add("vllm:num_requests_running", here, cell.at["idle-after"], 0.0)


def _requests(book: Book, folder: RunFolder, times: Mapping[CellKey, CellTimes]) -> None:
    """The client's counters and histograms: a point in each second in which a request of their level ended."""
    counts: dict[tuple[str, Key], Counts] = {}
    totals: dict[Key, dict[str, int]] = {}
    for second, group in _ended(folder, times):
        touched: set[Key] = set()
        for key, outcome, tokens, observed in group:
            if key not in totals:
                totals[key] = {"tokens": 0}
                _write(book, folder.run_id, second - 1, key, counts, totals)
            totals[key][outcome] = totals[key].get(outcome, 0) + 1
            totals[key]["tokens"] += tokens
            for name, value in observed.items():
                counts.setdefault((name, key), Counts(BUCKETS[name])).add(value)
            touched.add(key)
        for key in touched:
            _write(book, folder.run_id, second, key, counts, totals)


def _ended(
    folder: RunFolder, times: Mapping[CellKey, CellTimes]
) -> Iterator[tuple[int, list[tuple[Key, str, int, dict[str, float]]]]]:
    """(Unix second, the measured requests that ended in it), in order."""
    seconds: dict[int, list[tuple[Key, str, int, dict[str, float]]]] = {}
    for stored in folder.requests():
        if stored.phase != "measure" or stored.cell not in times:
            continue
        record, cell = stored.record, stored.cell
        values = zip(BUCKETS, (record.tpot_s, record.ttft_s, record.e2e_s), strict=True)
        observed = {name: value for name, value in values if value is not None and record.outcome == "ok"}
        key = (cell.profile, cell.condition.workload, str(cell.level))
        second = int(record.end_s + times[cell].shift_s) + 1
        seconds.setdefault(second, []).append((key, str(record.outcome), record.output_tokens, observed))
    yield from sorted(seconds.items())


def _write(
    book: Book,
    run: str,
    second: int,
    key: Key,
    counts: Mapping[tuple[str, Key], Counts],
    totals: Mapping[Key, Mapping[str, int]],
) -> None:
    here = {"job": JOB, "run": run, **dict(zip(("profile", "workload", "concurrency"), key, strict=True))}
    book.add("loadgen_output_tokens_total", here, second, float(totals[key]["tokens"]))
    for outcome in totals[key].keys() - {"tokens"} | {"ok"}:
        labels = {**here, "phase": "measure", "outcome": outcome}
        book.add("loadgen_requests_total", labels, second, float(totals[key].get(outcome, 0)))
    for name, bounds in BUCKETS.items():
        found = counts.get((name, key)) or Counts(bounds)
        rows = found.cumulative()
        for bound, value in rows:
            book.add(f"{name}_bucket", {**here, "le": bound}, second, value)
        book.add(f"{name}_count", here, second, rows[-1][1])
        book.add(f"{name}_sum", here, second, found.total)


def _run(
    book: Book, manifest: Manifest, cells: list[CellResult], times: Mapping[CellKey, CellTimes], shown: list[Shown]
) -> None:
    """The run as a whole: the findings all along, the progress as it was."""
    me = {"run": manifest.run_id, "job": JOB}
    began = datetime.fromisoformat(manifest.created_at).timestamp()
    ends = sorted(cell.at["idle-after"] for cell in times.values())
    ended = ends[-1] if ends else began
    planned = len(manifest.profiles) * len(manifest.conditions) * len(manifest.levels)
    planned *= manifest.repeats * manifest.sessions
    constant = [*shown, *shown_cells(manifest.run_id, cells), Shown("loadgen_run_cells_planned", me, float(planned))]
    constant.append(Shown("loadgen_run_started_timestamp_seconds", me, began))
    constant.append(Shown("loadgen_run_cells_failed", me, 0.0))
    for second in range(int(began), int(ended) + FINDINGS_STEP_S, FINDINGS_STEP_S):
        for one in constant:
            book.add(one.name, {**one.labels, "job": JOB}, second, one.value)
        book.add("loadgen_run_cells_measured", me, second, float(bisect_right(ends, second)))
    for key, cell in times.items():
        labels = {**me, "profile": key.profile, "workload": key.condition.workload}
        for second in range(int(cell.at["idle-before"]) + 1, int(cell.at["idle-after"]) + 1):
            book.add("loadgen_current_concurrency", labels, second, float(key.level))
        # Not a number ends the line; else it would be drawn on for five minutes.
        book.add("loadgen_current_concurrency", labels, int(cell.at["idle-after"]) + 1.5, math.nan)
