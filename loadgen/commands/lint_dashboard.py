"""Faults in a Grafana dashboard and in data-source provisioning, as they were seen in public (cases.md, part F)."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from loadgen.commands.lint_finding import Finding
from loadgen.commands.lint_metrics import lint_expression
from loadgen.errors import UsageError
from loadgen.profiles.yaml_text import read_text, read_yaml

BUILT_IN = frozenset({"-- Grafana --", "-- Dashboard --", "-- Mixed --", "grafana", "__expr__", "-- Expression --"})


def lint_dashboard(path: Path, uids: Collection[str] | None, recorded: Collection[str] = ()) -> Iterator[Finding]:
    """The dashboard's faults; UsageError if it cannot be read.

    `uids`: those of the provisioned data sources; None if no provisioning is known, so that a plain uid may be right.
    """
    board = _read_json(path)
    board = board.get("dashboard", board) if isinstance(board.get("dashboard"), dict) else board
    name = str(path)
    if "__inputs" in board:
        cure = "export without “share externally” and write the data source's uid"
        yield Finding("inputs", name, "__inputs asks a person for a data source, and provisioning has none", cure)
    if board.get("id") is not None:
        yield Finding("dashboard-id", name, f"id {board['id']} may be another dashboard's here", 'write "id": null')
    variables = [v for v in board.get("templating", {}).get("list", []) if isinstance(v, dict)]
    names = {str(v.get("name")) for v in variables if v.get("type") == "datasource"}
    known = _Known(uids, names)
    for variable in variables:
        yield from _variable(variable, name, known)
    for mark in board.get("annotations", {}).get("list", []):
        where = f"{name}: annotation {mark.get('name')}"
        yield from known.check(mark.get("datasource"), where)
        expr = mark.get("expr") or (mark.get("target") or {}).get("expr")
        if expr:
            yield from lint_expression(str(expr), where, in_dashboard=True, recorded=recorded)
    for panel in _panels(board.get("panels", [])):
        yield from _panel(panel, name, known, recorded)


def lint_provisioning(path: Path, scrape_interval: str | None) -> tuple[list[Finding], set[str]]:
    """The faults of one data-source file, and its uids."""
    found: list[Finding] = []
    uids: set[str] = set()
    for source in (read_yaml(path) or {}).get("datasources") or []:
        where = f"{path}: data source {source.get('name')}"
        if not source.get("uid"):
            what = "it has no uid, so Grafana makes one up and no panel can name it"
            found.append(Finding("datasource-uid", where, what, "set a fixed uid"))
        else:
            uids.add(str(source["uid"]))
        if source.get("type") != "prometheus":
            continue
        if re.search(r"//(?:localhost|127\.)", str(source.get("url", ""))):
            what = f"{source['url']} is Grafana's own container"
            found.append(Finding("localhost-target", where, what, "name the service: http://prometheus:9090"))
        interval = (source.get("jsonData") or {}).get("timeInterval")
        if scrape_interval and interval != scrape_interval:
            what = f"timeInterval is {interval or 'not set (15s)'} and Prometheus scrapes every {scrape_interval}"
            cure = f"set jsonData.timeInterval to {scrape_interval}: $__rate_interval is made of it"
            found.append(Finding("time-interval", where, what, cure))
    return found, uids


class _Known:
    """The data sources that a dashboard may name."""

    def __init__(self, uids: Collection[str] | None, variables: Collection[str]) -> None:
        self._uids = uids
        self._variables = variables

    def check(self, source: object, where: str) -> Iterator[Finding]:
        """A finding if the reference leads nowhere for sure."""
        uid = source.get("uid") if isinstance(source, Mapping) else source
        if uid is None or uid == "":
            what = "no data source is named, so Grafana takes its default one"
            yield Finding("datasource-uid", where, what, "name the provisioned uid", is_error=False)
            return
        text = str(uid)
        variable = re.fullmatch(r"\$\{?(\w+)(?::\w+)?\}?", text)
        if text in BUILT_IN or (variable and variable[1] in self._variables) or text in (self._uids or ()):
            return
        if self._uids is None and variable is None:
            what = f"no provisioning is known that has the data source {text!r}"
            yield Finding("datasource-uid", where, what, "name its folder with --provisioning", is_error=False)
            return
        right = ", ".join(sorted(self._uids or ()))
        cure = (
            f"write the provisioned uid ({right})" if right else "provision a data source with a fixed uid and name it"
        )
        yield Finding("datasource-uid", where, f"data source {text!r} matches nothing", cure)


def _panels(panels: object) -> Iterator[dict[str, Any]]:
    """All panels, those inside collapsed rows too."""
    for panel in panels if isinstance(panels, list) else []:
        if isinstance(panel, dict):
            yield panel
            yield from _panels(panel.get("panels"))


def _panel(panel: Mapping[str, Any], name: str, known: _Known, recorded: Collection[str]) -> Iterator[Finding]:
    if panel.get("type") in ("row", "text", "dashlist", "news"):
        return
    where = f"{name}: panel {panel.get('title') or panel.get('id')}"
    yield from known.check(panel.get("datasource"), where)
    for target in panel.get("targets") or []:
        if target.get("datasource") is not None:
            yield from known.check(target["datasource"], where)
        if target.get("expr"):
            yield from lint_expression(str(target["expr"]), where, in_dashboard=True, recorded=recorded)


def _variable(variable: Mapping[str, Any], name: str, known: _Known) -> Iterator[Finding]:
    if variable.get("type") != "query":
        return
    where = f"{name}: variable {variable.get('name')}"
    query = variable.get("query")
    text = str(query.get("query", "") if isinstance(query, Mapping) else query or variable.get("definition") or "")
    if variable.get("datasource") is None:
        yield Finding("variable-datasource", where, "it names no data source", "set the provisioned uid")
    else:
        yield from known.check(variable["datasource"], where)
    if re.fullmatch(r"\s*label_values\(\s*\w+\s*\)\s*", text):
        what = f"{text} asks every series of the server"
        yield Finding(
            "variable-query", where, what, "name a metric: label_values(vllm:num_requests_running, model_name)"
        )
    else:
        match = re.fullmatch(r"\s*label_values\((.*),\s*\w+\s*\)\s*", text, re.DOTALL)
        if match:
            yield from lint_expression(match[1], where, in_dashboard=False)
    if variable.get("refresh", 0) == 0:
        yield Finding(
            "variable-refresh", where, "it is never refreshed", "set refresh to 1 (on load) or 2 (on time range)"
        )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no JSON ({error}); export the dashboard again.") from error
    if not isinstance(found, dict):
        raise UsageError(f"{path} is no dashboard; export one from Grafana as JSON.")
    return found
