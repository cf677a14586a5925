"""Whether every metric that a dashboard, rule or alert names was seen on a real vLLM 0.32, or is ours."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from loadgen.commands.lint_promql import metric_names
from loadgen.metrics.parse import parse
from loadgen.report.exported import exported_sample_names

ROOT = Path(__file__).resolve().parents[2]
CAPTURES = ROOT / "tests" / "data" / "captures"
RELEASE = "vllm-0.32"
FROM_PROMETHEUS = frozenset({"up", "scrape_duration_seconds"})


def unknown_names(folder: Path = ROOT / "dashboards") -> list[str]:
    """One sentence per name that is neither in a recorded body, nor ours, nor recorded by a rule."""
    rules = list(_rules(folder))
    known = captured_names() | exported_sample_names() | FROM_PROMETHEUS
    known |= {str(rule["record"]) for _, rule in rules if "record" in rule}
    named = [*_in_dashboards(folder), *((where, str(rule["expr"])) for where, rule in rules)]
    return [
        f"{where} names {name}, which no recorded {RELEASE} body has and loadgen does not show"
        for where, expr in named
        for name in sorted(metric_names(expr) - known)
    ]


def captured_names() -> frozenset[str]:
    """Every sample name in the recorded bodies of the release."""
    bodies = [path.read_bytes() for path in CAPTURES.glob(f"{RELEASE}*/metrics-*.txt")]
    if not bodies:
        raise FileNotFoundError(f"{CAPTURES} holds no recorded body of {RELEASE}")
    return frozenset(name for body in bodies for name in parse(body).samples)


def _in_dashboards(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted((folder / "grafana").glob("*.json")):
        board = json.loads(path.read_text(encoding="utf-8"))
        for panel in board["panels"]:
            for target in panel["targets"]:
                yield f"{path.name}: {panel['title']}", target["expr"]
        for mark in board["annotations"]["list"]:
            yield f"{path.name}: annotation {mark['name']}", mark["expr"]
        for variable in board["templating"]["list"]:
            inner = re.fullmatch(r"label_values\((.*), \w+\)", variable["query"]["query"])
            if inner:
                yield f"{path.name}: variable {variable['name']}", inner[1]


def _rules(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted((folder / "rules").glob("*.yml")):
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]:
            for rule in group["rules"]:
                yield f"rules/{path.name}", rule
