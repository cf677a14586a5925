"""Timed samples on their way to Prometheus: remote write, or OpenMetrics text for promtool."""

import re
import struct
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from loadgen.engines.address import clean_url
from loadgen.errors import UsageError

BATCH = 20_000
"""Samples in one request."""
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Series:
    """One time series; points are (Unix milliseconds, value), ascending."""

    name: str
    labels: Mapping[str, str]
    points: list[tuple[int, float]] = field(default_factory=list)


def remote_write(series: Sequence[Series], url: str) -> int:
    """How many samples Prometheus took; UsageError with the cure if it does not take them.

    The protocol is Prometheus' remote write 1.0: a protobuf message in Snappy's block format.
    """
    url = clean_url(url, key=None)
    sent = 0
    for batch in _batches(series):
        body = snappy(b"".join(_field(1, _time_series(one)) for one in batch))
        headers = {
            "Content-Encoding": "snappy",
            "Content-Type": "application/x-protobuf",
            "User-Agent": "loadgen",
            "X-Prometheus-Remote-Write-Version": "0.1.0",
        }
        request = urllib.request.Request(f"{url}/api/v1/write", data=body, headers=headers)  # noqa: S310 - the user's own address
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S):  # noqa: S310 - the same
                sent += sum(len(one.points) for one in batch)
        except urllib.error.HTTPError as error:
            raise UsageError(_refused(url, error.code, error.read().decode(errors="replace"))) from error
        except OSError as error:
            raise UsageError(
                f"{url} does not answer ({error}); start Prometheus (make up), or take --output."
            ) from error
    return sent


def _refused(url: str, code: int, text: str) -> str:
    reason = " ".join(text.split())[:160]
    if code == 404 or "receiver" in text:
        return f"{url} takes no remote writes; start Prometheus with --web.enable-remote-write-receiver."
    if re.search(r"out of bounds|too old|out of order", text):
        return (
            f"{url} takes no samples of that time ({reason}); set storage.tsdb.out_of_order_time_window, as "
            "dashboards/prometheus.yml does."
        )
    return f"{url} refuses the samples ({code}: {reason}); is it Prometheus?"


def open_metrics(series: Sequence[Series], path: Path) -> int:
    """How many samples the file holds: OpenMetrics text that `promtool tsdb create-blocks-from openmetrics` reads.

    Every sample stands as of unknown type: promtool needs names and times alone.
    """
    by_name: dict[str, list[Series]] = {}
    for one in series:
        by_name.setdefault(one.name, []).append(one)
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for name, group in sorted(by_name.items()):
            file.write(f"# TYPE {name} unknown\n")
            for one in group:
                labels = ",".join(f'{key}="{_escaped(value)}"' for key, value in sorted(one.labels.items()))
                for at_ms, value in one.points:
                    file.write(f"{name}{{{labels}}} {_number(value)} {at_ms / 1000:.3f}\n")
                    count += 1
        file.write("# EOF\n")
    return count


def _number(value: float) -> str:
    return {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}.get(repr(float(value)), repr(float(value)))


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _batches(series: Sequence[Series]) -> Iterator[list[Series]]:
    batch: list[Series] = []
    size = 0
    for one in series:
        for start in range(0, len(one.points), BATCH):
            part = Series(one.name, one.labels, one.points[start : start + BATCH])
            batch.append(part)
            size += len(part.points)
            if size >= BATCH:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def _time_series(series: Series) -> bytes:
    labels = sorted({**series.labels, "__name__": series.name}.items())
    parts = [_field(1, _field(1, key.encode()) + _field(2, value.encode())) for key, value in labels if value]
    for at_ms, value in series.points:
        parts.append(_field(2, b"\x09" + struct.pack("<d", value) + b"\x10" + _varint(at_ms)))
    return b"".join(parts)


def _field(number: int, content: bytes) -> bytes:
    """A protobuf field that is a message, a text or bytes."""
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def snappy(data: bytes) -> bytes:
    """The data in Snappy's block format, as literals alone: valid, not smaller, and no dependency."""
    parts = [_varint(len(data))]
    for start in range(0, len(data), 65536):
        block = data[start : start + 65536]
        parts.append(b"\xf4" + struct.pack("<H", len(block) - 1) + block)
    return b"".join(parts)
