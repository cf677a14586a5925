"""Reads a `/metrics` body into samples under their exact names.

prometheus_client groups samples into families and guesses the family's name: it drops `_total`, rejects vLLM's body as
OpenMetrics ("clashing name") and calls OpenMetrics counters unknown when read as text. It also reads every line of a
600-line body twice a second inside the process that stamps tokens, where the gauges alone take a fiftieth of the time.
We need only sample names, which both formats write alike; the tests hold this reader against prometheus_client's.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_LINE = re.compile(
    r"([a-zA-Z_:][a-zA-Z0-9_:]*)"  # name
    rf'(?:\s*\{{((?:[^"}}]|{_QUOTED})*)\}}\s*|\s+)'  # labels, or at least a blank
    r"([^\s#]+)"  # value
    r"(?:\s+[-+0-9.eE]+)?"  # time stamp: ignored
    r"\s*(?:#.*)?"  # exemplar: ignored
)
_LABEL = re.compile(rf"\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*({_QUOTED})\s*(?:,|$)")
_ESCAPE = re.compile(r'\\([\\n"])')


@dataclass(frozen=True)
class Sample:
    """One line of a body."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True)
class Snapshot:
    """One look at `/metrics`."""

    samples: Mapping[str, tuple[Sample, ...]]
    """By exact sample name: `vllm:iteration_tokens_total_bucket`, never by family."""
    warnings: tuple[str, ...] = ()
    body: bytes = field(default=b"", repr=False)
    seconds: float = 0.0
    """How long the server took to answer."""
    at_s: float = 0.0
    """When the answer was complete, on the monotonic clock."""

    @property
    def available(self) -> bool:
        """True if the server told anything about itself as vLLM."""
        return any(name.startswith("vllm:") for name in self.samples)

    def find(self, *names: str) -> tuple[Sample, ...] | None:
        """The samples of the first name that is there; None if none is: not available, which is not 0."""
        for name in names:
            if name in self.samples:
                return self.samples[name]
        return None


def parse(body: str | bytes, content_type: str | None = None, only: Collection[str] | None = None) -> Snapshot:
    """The body's samples, with a warning for each kind of fault; nothing in a body raises.

    `content_type` tells OpenMetrics, whose end mark then has to be there. With `only`, other names are skipped unread.
    """
    raw = body.encode("utf-8") if isinstance(body, str) else body
    text = raw.decode("utf-8", errors="replace").removeprefix("\ufeff")
    samples: dict[str, list[Sample]] = {}
    bad: list[int] = []
    wanted = None if only is None else tuple(only)
    for number, line in enumerate(text.split("\n"), start=1):
        if not line or line[0] == "#" or (wanted is not None and not line.startswith(wanted)):
            continue
        if line.isspace():
            continue
        parsed = _parse_line(line)
        if parsed is None:
            bad.append(number)
        elif only is None or parsed[0] in only:
            samples.setdefault(parsed[0], []).append(parsed[1])
    return Snapshot(
        samples={name: tuple(found) for name, found in samples.items()},
        warnings=_warnings(text, content_type, bad),
        body=raw,
    )


def _warnings(text: str, content_type: str | None, bad: list[int]) -> tuple[str, ...]:
    found: list[str] = []
    if not text.strip():
        found.append("/metrics is empty, so server-side figures are not available; start vLLM with log stats enabled")
    elif "openmetrics" in (content_type or "") and not text.rstrip().endswith("# EOF"):
        found.append("/metrics ends without its end mark, so rows may be missing; look at a proxy's size limit")
    if bad:
        found.append(f"/metrics has {len(bad)} unreadable line(s), the first is line {bad[0]}; they were left out")
    return tuple(found)


def _parse_line(line: str) -> tuple[str, Sample] | None:
    match = _LINE.fullmatch(line.strip())
    if match is None:
        return None
    name, label_text, value_text = match.groups()
    labels = _parse_labels(label_text) if label_text else {}
    value = _parse_value(value_text)
    return None if labels is None or value is None else (name, Sample(labels, value))


def _parse_labels(text: str) -> dict[str, str] | None:
    labels: dict[str, str] = {}
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _LABEL.match(text, position)
        if match is None:
            return None
        name, quoted = match.groups()
        value = quoted[1:-1]
        labels[name] = _ESCAPE.sub(lambda m: "\n" if m[1] == "n" else m[1], value) if "\\" in value else value
        position = match.end()
    return labels


def _parse_value(text: str) -> float | None:
    if "_" in text:
        return None  # float() would take 1_000
    try:
        return float(text)
    except ValueError:
        return None
