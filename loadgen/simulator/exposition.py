"""Counters, gauges and histograms in plain Python, rendered on scrape in Prometheus' text format.

prometheus-client takes a lock and several calls per observation; at thousands of output events a second that alone
would cost a tenth of a core, so only its process rows are used.
"""

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping

from prometheus_client.utils import floatToGoString

from loadgen.simulator.families import Family

number: Callable[[float], str] = floatToGoString


def labels_text(labels: Mapping[str, str]) -> str:
    """`{a="x",b="y"}` with sorted names and escaped values; empty without labels."""
    if not labels:
        return ""
    escaped = {k: v.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"") for k, v in labels.items()}
    return "{" + ",".join(f'{name}="{escaped[name]}"' for name in sorted(escaped)) + "}"


class Value:
    """One counter or gauge row."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0


class Histogram:
    """Bucket counts (not yet cumulative), sum and count of one histogram."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Counts one value; a bucket holds values up to and including its bound."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        """How many values were observed."""
        return sum(self.counts)


class Registry:
    """Families with their rows; `render` gives the text that a scrape gets."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._labels = dict(labels)
        self._created = time.time()
        self._families: list[Family] = []
        self._values: dict[tuple[str, str], Value] = {}
        self._histograms: dict[str, Histogram] = {}
        self._lines: list[tuple[str, Value | _Rows | None]] = []

    def add(self, families: Iterable[Family]) -> None:
        """Registers families, all rows at zero, to be exposed in this order."""
        for family in families:
            if family.kind == "histogram":
                self._histograms[family.name] = Histogram(family.buckets)
                self._add_histogram(family)
            else:
                self._add_values(family)

    def add_info(self, name: str, text: str, labels: Mapping[str, str]) -> None:
        """Registers a gauge that is always 1 and says everything in its labels."""
        self._lines.append((f"# HELP {name} {text}\n# TYPE {name} gauge\n{name}{labels_text(labels)} 1.0\n", None))

    def value(self, name: str, label: str = "") -> Value:
        """The row of a counter or gauge (its extra label's value, if it has one); KeyError if there is none."""
        return self._values[name, label]

    def histogram(self, name: str) -> Histogram:
        """The histogram of that name; KeyError if there is none."""
        return self._histograms[name]

    def render(self) -> bytes:
        """The whole text."""
        parts: list[str] = []
        for line, source in self._lines:
            if isinstance(source, Value):
                parts.append(f"{line}{number(source.value)}\n")
            elif isinstance(source, _Rows):
                source.render(parts)
            else:
                parts.append(line)
        return "".join(parts).encode()

    def _row_labels(self, family: Family, extra: str = "") -> dict[str, str]:
        labels = dict(self._labels)
        if not family.engine_label:
            labels.pop("engine", None)
        if family.extra is not None:
            labels[family.extra[0]] = extra
        return labels

    def _add_values(self, family: Family) -> None:
        shown = f"{family.name}_total" if family.kind == "counter" else family.name
        extras = family.extra[1] if family.extra is not None else ("",)
        self._lines.append((f"# HELP {shown} {family.help}\n# TYPE {shown} {family.kind}\n", None))
        for extra in extras:
            row = self._values[family.name, extra] = Value()
            self._lines.append((f"{shown}{labels_text(self._row_labels(family, extra))} ", row))
        if family.kind == "counter":
            self._add_created(family, extras)

    def _add_histogram(self, family: Family) -> None:
        self._lines.append((f"# HELP {family.name} {family.help}\n# TYPE {family.name} histogram\n", None))
        labels = self._row_labels(family)
        self._lines.append(("", _Rows(family.name, labels, self._histograms[family.name])))
        self._add_created(family, ("",))

    def _add_created(self, family: Family, extras: tuple[str, ...]) -> None:
        name = f"{family.name}_created"
        created = number(self._created)
        rows = "".join(f"{name}{labels_text(self._row_labels(family, extra))} {created}\n" for extra in extras)
        self._lines.append((f"# HELP {name} {family.help}\n# TYPE {name} gauge\n{rows}", None))


class _Rows:
    """A histogram's rows with everything but the numbers made once."""

    def __init__(self, name: str, labels: Mapping[str, str], histogram: Histogram) -> None:
        self._histogram = histogram
        bounds = [*(number(b) for b in histogram.bounds), "+Inf"]
        self._buckets = [f"{name}_bucket{labels_text({**labels, 'le': bound})} " for bound in bounds]
        self._count = f"{name}_count{labels_text(labels)} "
        self._sum = f"{name}_sum{labels_text(labels)} "

    def render(self, parts: list[str]) -> None:
        """Appends bucket, count and sum rows."""
        running = 0
        for head, count in zip(self._buckets, self._histogram.counts, strict=True):
            running += count
            parts.append(f"{head}{number(running)}\n")
        parts.append(f"{self._count}{number(running)}\n")
        parts.append(f"{self._sum}{number(self._histogram.total)}\n")


class ProcessRows:
    """prometheus-client's `python_*` and `process_*` rows of this process."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

        self._registry = CollectorRegistry()
        GCCollector(self._registry)
        PlatformCollector(self._registry)
        ProcessCollector(registry=self._registry)

    def render(self) -> bytes:
        """The rows as text."""
        from prometheus_client import generate_latest

        return generate_latest(self._registry)
