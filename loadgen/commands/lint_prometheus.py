"""Faults in a prometheus.yml and its rule files (cases.md, parts E and F)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadgen.commands.lint_finding import Finding
from loadgen.commands.lint_metrics import lint_expression
from loadgen.errors import UsageError
from loadgen.profiles.yaml_text import read_yaml

SLOW_S = 2.0
"""A level of a sweep lasts seconds (case C100)."""
DEFAULT_INTERVAL = "1m"
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31536000.0}


@dataclass(frozen=True)
class ComposePorts:
    """A Compose service's name with its container ports and what they are published as."""

    service: str
    container: frozenset[int]
    published: frozenset[int]


@dataclass(frozen=True)
class Checked:
    """What the file says, for the checks of other files."""

    findings: tuple[Finding, ...]
    scrape_interval: str
    recorded: frozenset[str]


def duration_s(text: object) -> float | None:
    """Seconds of a Prometheus duration such as `1m30s`; None if it is none."""
    parts = re.findall(r"(\d+)(ms|[smhdwy])", str(text))
    if not parts or "".join(n + u for n, u in parts) != str(text):
        return None
    return sum(int(number) * _UNITS[unit] for number, unit in parts)


def lint_prometheus(path: Path, services: tuple[ComposePorts, ...] = ()) -> Checked:
    """The faults of the file and of the rule files that it names. `services`: of the Compose file beside it, if any."""
    config = _read(path)
    overall = config.get("global") or {}
    interval = str(overall.get("scrape_interval", DEFAULT_INTERVAL))
    timeout = overall.get("scrape_timeout")
    found = [*_times(str(path), interval, timeout)]
    jobs = config.get("scrape_configs") or []
    if not jobs:
        found.append(Finding("no-targets", str(path), "it scrapes nothing", "add scrape_configs"))
    for job in jobs:
        where = f"{path}: job {job.get('job_name')}"
        if "scrape_interval" in job or "scrape_timeout" in job:
            own = str(job.get("scrape_interval", interval))
            found += _times(where, own, job.get("scrape_timeout", timeout))
        for static in job.get("static_configs") or []:
            for target in static.get("targets") or []:
                found += _target(where, str(target), services)
        for dns in job.get("dns_sd_configs") or []:
            for name in dns.get("names") or []:
                found += _target(where, f"{name}:{dns.get('port', 0)}", services)
    rules = [rule for file in _rule_files(path, config) for rule in _rules(file)]
    recorded = frozenset(str(rule["record"]) for _, rule in rules if "record" in rule)
    for file, rule in rules:
        where = f"{file}: {'record' if 'record' in rule else 'alert'} {rule.get('record') or rule.get('alert')}"
        found += lint_expression(str(rule.get("expr", "")), where, in_dashboard=False, recorded=recorded)
    return Checked(tuple(found), interval, recorded)


def _times(where: str, interval: str, timeout: object) -> Iterator[Finding]:
    seconds = duration_s(interval)
    if seconds is None:
        yield Finding("scrape-interval", where, f"scrape_interval {interval} is no duration", "write it like 1s")
        return
    if seconds > SLOW_S:
        what = f"a scrape every {interval} sees a level of 20 s once or not at all"
        yield Finding("slow-scrape", where, what, "set scrape_interval to 1s")
    limit = None if timeout is None else duration_s(timeout)
    if limit is not None and limit > seconds:
        what = f"scrape_timeout {timeout} is longer than scrape_interval {interval}, and Prometheus refuses to start"
        yield Finding("scrape-timeout", where, what, f"set scrape_timeout to {interval}")


def _target(where: str, target: str, services: tuple[ComposePorts, ...]) -> Iterator[Finding]:
    host, _, port_text = target.removeprefix("http://").partition(":")
    port = int(port_text) if port_text.isdecimal() else 80
    if re.fullmatch(r"localhost|127\.\d+\.\d+\.\d+|\[?::1\]?|0\.0\.0\.0", host):
        if port != 9090:  # Prometheus itself, which is what localhost means there
            what = f"{target} is Prometheus' own container"
            cure = "name the service and its container port: vllm:8000"
            yield Finding("localhost-target", where, what, cure)
        return
    service = next((one for one in services if one.service == host), None)
    if services and service is None and "." not in host:  # a name with a dot is a machine elsewhere
        names = ", ".join(sorted(one.service for one in services))
        yield Finding("unknown-service", where, f"the Compose file has no service {host}", f"take one of {names}")
    elif service and service.container and port not in service.container:
        right = min(service.container)
        what = f"{target}: {service.service} listens on {right} inside the network"
        what += f", {port} is its port on the host" if port in service.published else ""
        yield Finding("host-port", where, what, f"write {host}:{right}")


def _rule_files(path: Path, config: Mapping[str, Any]) -> list[Path]:
    patterns = [str(pattern) for pattern in config.get("rule_files") or []]
    found = (file for pattern in patterns for file in sorted(_base(path, pattern).glob(pattern.lstrip("/"))))
    return list(found)


def _base(path: Path, pattern: str) -> Path:
    return Path("/") if pattern.startswith("/") else path.parent


def _rules(path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for group in _read(path).get("groups") or []:
        for rule in group.get("rules") or []:
            yield path, rule


def _read(path: Path) -> dict[str, Any]:
    found = read_yaml(path)
    if not isinstance(found, dict):
        raise UsageError(f"{path} is no mapping; a prometheus.yml has global and scrape_configs.")
    return found
