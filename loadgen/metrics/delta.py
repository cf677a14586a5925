"""What a server's counters did between two snapshots: summed over engines, resets found."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from loadgen.metrics import names
from loadgen.metrics.histogram import merge
from loadgen.metrics.model import CounterDelta, HistogramDelta
from loadgen.metrics.parse import Sample, Snapshot

_COUNTERS = (
    names.GENERATION_TOKENS,
    names.PROMPT_TOKENS,
    names.DRAFTS,
    names.DRAFT_TOKENS,
    names.ACCEPTED_TOKENS,
    names.ACCEPTED_PER_POSITION,
    names.PREEMPTIONS,
    names.PREFIX_CACHE_QUERIES,
    names.PREFIX_CACHE_HITS,
    names.REQUESTS_FINISHED,
)
_HISTOGRAMS = (
    names.INTER_TOKEN_LATENCY,
    names.ITERATION_TOKENS,
    names.TIME_TO_FIRST_TOKEN,
    names.TIME_PER_OUTPUT_TOKEN,
    names.E2E_LATENCY,
    names.QUEUE_TIME,
)
Labels = frozenset[tuple[str, str]]


def increase(values: Sequence[float]) -> tuple[float, bool]:
    """(growth over a series of scrapes of one counter, True if it was reset): a fall counts from 0 again."""
    total, reset = 0.0, False
    for earlier, later in pairwise(values):
        if later < earlier:
            reset = True
            total += later
        else:
            total += later - earlier
    return total, reset


def delta(before: Snapshot, after: Snapshot, duration_s: float) -> CounterDelta:
    """The window's counters; every figure None with `reset_detected` if the server restarted in between.

    A reset is a counter that fell, a row that vanished, or another `_created` or process start time: a restart can
    hide behind a larger value.
    """
    warnings = [*before.warnings, *after.warnings]
    for when, snapshot in (("before", before), ("after", after)):
        if not snapshot.available:
            warnings.append(
                f"the snapshot {when} the window has no vLLM metrics: server-side figures are not available"
            )
    if not before.available or not after.available:
        return CounterDelta(duration_s, warnings=tuple(dict.fromkeys(warnings)))
    resets = find_resets(before, after)
    if resets:
        warnings.append(f"the server's counters were reset inside the window ({resets[0]}); measure the cell again")
        return CounterDelta(duration_s, reset_detected=True, warnings=tuple(dict.fromkeys(warnings)))
    read = _Reader(before, after, warnings)
    positions = read.positions()
    drafts = read.total(names.DRAFTS)
    if any(later > earlier for earlier, later in pairwise(positions)):
        warnings.append(
            "accepted tokens rise with the position, which cannot be: another draft length inside the window?"
        )
    return CounterDelta(
        duration_s=duration_s,
        generation_tokens=read.total(names.GENERATION_TOKENS),
        prompt_tokens=read.total(names.PROMPT_TOKENS),
        drafts=drafts,
        draft_tokens=read.total(names.DRAFT_TOKENS),
        accepted_tokens=read.total(names.ACCEPTED_TOKENS),
        accepted_per_position=positions,
        preemptions=read.total(names.PREEMPTIONS),
        prefix_cache_queries=read.total(names.PREFIX_CACHE_QUERIES),
        prefix_cache_hits=read.total(names.PREFIX_CACHE_HITS),
        requests_finished=read.by_label(names.REQUESTS_FINISHED, "finished_reason"),
        inter_token_latency=read.histogram(names.INTER_TOKEN_LATENCY),
        iteration_tokens=read.histogram(names.ITERATION_TOKENS),
        time_to_first_token=read.histogram(names.TIME_TO_FIRST_TOKEN),
        time_per_output_token=read.histogram(names.TIME_PER_OUTPUT_TOKEN),
        e2e_latency=read.histogram(names.E2E_LATENCY),
        queue_time=read.histogram(names.QUEUE_TIME),
        process_cpu_s=read.total(names.PROCESS_CPU),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def find_resets(before: Snapshot, after: Snapshot) -> list[str]:
    """Evidence of a restart between the snapshots, the strongest first; empty if there is none."""
    found: list[str] = []
    started, restarted = before.find(*names.PROCESS_START), after.find(*names.PROCESS_START)
    if started and restarted and started[0].value != restarted[0].value:
        found.append("process_start_time_seconds changed")
    rows = [name for group in _COUNTERS for name in group]
    rows += [f"{name}{suffix}" for group in _HISTOGRAMS for name in group for suffix in ("_count", "_bucket")]
    rows += names.PROCESS_CPU
    for name in rows:
        found += _fallen(name, before, after)
    created = {f"{name.removesuffix('_total')}_created" for group in _COUNTERS for name in group}
    created |= {f"{name}_created" for group in _HISTOGRAMS for name in group}
    for name in sorted(created):
        earlier = _rows(before.find(name) or ())
        if any(earlier.get(labels, value) != value for labels, value in _rows(after.find(name) or ()).items()):
            found.append(f"{name} changed")
    return found


def _fallen(name: str, before: Snapshot, after: Snapshot) -> list[str]:
    later = _rows(after.find(name) or ())
    for labels, value in _rows(before.find(name) or ()).items():
        if labels not in later:
            return [f"a row of {name} vanished"]
        if later[labels] < value:
            return [f"{name} fell from {value:g} to {later[labels]:g}"]
    return []


def _rows(samples: Iterable[Sample]) -> dict[Labels, float]:
    return {frozenset(sample.labels.items()): sample.value for sample in samples}


def _bound(text: str) -> float | None:
    try:
        bound = float(text)
    except ValueError:
        return None
    return None if math.isnan(bound) else bound


@dataclass
class _Reader:
    """Differences between two snapshots, row by row, then summed: engines are added before any ratio is formed."""

    before: Snapshot
    after: Snapshot
    warnings: list[str] = field(default_factory=list)

    def _name(self, aliases: Sequence[str], suffix: str = "") -> str | None:
        """The first alias that the later snapshot has; both snapshots are read under the same name."""
        return next((f"{name}{suffix}" for name in aliases if f"{name}{suffix}" in self.after.samples), None)

    def _differences(self, name: str) -> list[tuple[dict[str, str], float]]:
        earlier = _rows(self.before.find(name) or ())
        out: list[tuple[dict[str, str], float]] = []
        for sample in self.after.samples[name]:
            change = sample.value - earlier.get(frozenset(sample.labels.items()), 0.0)
            if math.isfinite(change):
                out.append((dict(sample.labels), change))
            else:
                self.warnings.append(f"{name} has a value that is not a number; the row was left out")
        return out

    def total(self, aliases: Sequence[str]) -> float | None:
        """Growth over all rows; None if the server has no such counter, or no row of it is a number."""
        name = self._name(aliases)
        if name is None:
            return None
        changes = [change for _, change in self._differences(name)]
        return sum(changes) if changes else None

    def by_label(self, aliases: Sequence[str], label: str) -> dict[str, float]:
        """Growth by the value of one label; empty if the server has no such counter."""
        name = self._name(aliases)
        totals: dict[str, float] = {}
        for labels, change in self._differences(name) if name else ():
            value = labels.get(label, "")
            totals[value] = totals.get(value, 0.0) + change
        return totals

    def positions(self) -> tuple[float, ...]:
        """Accepted tokens at position 0, 1, …; a position that was not there before began at 0."""
        found = self.by_label(names.ACCEPTED_PER_POSITION, "position")
        by_number = {int(position): change for position, change in found.items() if position.isdecimal()}
        return tuple(by_number.get(position, 0.0) for position in range(max(by_number, default=-1) + 1))

    def histogram(self, aliases: Sequence[str]) -> HistogramDelta | None:
        """Observations of the window, merged over engines on the bounds that all of them have."""
        count_name = self._name(aliases, "_count")
        if count_name is None:
            return None
        base = count_name.removesuffix("_count")
        count, total = self.total((count_name,)), self.total((f"{base}_sum",))
        if count is None or total is None:
            return None
        parts: dict[Labels, dict[float, float]] = {}
        if f"{base}_bucket" in self.after.samples:
            for labels, change in self._differences(f"{base}_bucket"):
                bound = _bound(labels.pop("le", ""))
                if bound is None:
                    self.warnings.append(f"{base} has a bucket without a bound; it was left out")
                    continue
                parts.setdefault(frozenset(labels.items()), {})[bound] = change
        buckets, dropped = merge(parts.values())
        if dropped:
            self.warnings.append(
                f"the engines' buckets of {base} differ; only the {len(buckets)} common ones were kept"
            )
        return HistogramDelta(count, total, buckets)
