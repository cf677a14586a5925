"""The dashboards' queries, put to a running Prometheus: which panels have data, and which have none."""

import json
import math
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GRAFANA = Path(__file__).resolve().parents[2] / "dashboards" / "grafana"


@dataclass(frozen=True)
class Prometheus:
    """A running Prometheus."""

    url: str

    def ask(self, path: str, **parameters: object) -> Any:
        """The `data` of an answer of its HTTP API; RuntimeError with its words if it refuses."""
        text = urllib.parse.urlencode(parameters, doseq=True).encode()
        request = urllib.request.Request(f"{self.url}/api/v1/{path}", data=text or None)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"Prometheus refuses {path}: {error.read().decode(errors='replace')}") from error


@dataclass(frozen=True)
class PanelQuery:
    """One query of one panel."""

    board: str
    panel: str
    ref: str
    expr: str
    is_instant: bool

    def __str__(self) -> str:
        return f"{self.board}: {self.panel} {self.ref}"


def panel_queries() -> Iterator[PanelQuery]:
    """Every query of every panel of every dashboard."""
    for path in sorted(GRAFANA.glob("*.json")):
        for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]:
            for target in panel["targets"]:
                instant = bool(target.get("instant"))
                yield PanelQuery(path.stem, panel["title"], target["refId"], target["expr"], instant)


def answers(prometheus: Prometheus, query: PanelQuery, runs: Sequence[str], began: float, ended: float) -> list[float]:
    """The numbers that the panel would show, with each of these runs chosen in turn."""
    found: list[float] = []
    for run in runs:
        expr = fill(query.expr, run=run)
        if query.is_instant:
            found += values(prometheus.ask("query", query=expr, time=ended))
        else:
            found += values(prometheus.ask("query_range", query=expr, start=began, end=ended, step=1))
    return found


def unanswered(prometheus: str, runs: Sequence[str], began: float, ended: float) -> list[str]:
    """The panel queries without data between these Unix seconds; empty if every panel shows something."""
    there = Prometheus(prometheus)
    return [str(query) for query in panel_queries() if not answers(there, query, runs, began, ended)]


def values(answer: dict[str, Any]) -> list[float]:
    """The numbers in an answer, NaN left out."""
    rows = [row.get("values") or [row["value"]] for row in answer["result"]]
    return [number for row in rows for _, text in row if not math.isnan(number := float(text))]


def fill(expr: str, **variables: str) -> str:
    """The PromQL with Grafana's variables filled in; a scrape each second makes $__rate_interval 4 s at the least."""
    known = {"__rate_interval": "5s", "__interval": "1s", "model": ".*", "server": ".*", "workload": ".*", **variables}
    for name in sorted(known, key=len, reverse=True):
        expr = expr.replace(f"${name}", known[name])
    return expr
