"""One client under one load: a fresh server on one core, the client's process tree on the other."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.clients.base import ROOT, Client, Reading
from benchmarks.figures import BrokenRunError, Cost, Figures, figures
from benchmarks.loops.common import Load
from benchmarks.mock import Truth, serving
from benchmarks.scenarios import Scenario

MEASURE = Path(__file__).with_name("measure.py")


@dataclass(frozen=True)
class Bench:
    """Where things are and run."""

    binary: Path
    folder: Path
    server_core: int | None
    client_core: int | None
    timeout_s: float


def measure(bench: Bench, client: Client, scenario: Scenario) -> Figures:
    """The figures of one run; a whole command runs twice, with the short load first. Raises BrokenRunError."""
    short = None
    if client.whole_command:
        truths, cost, _ = _run(bench, client, scenario.short)
        short = (scenario.short, cost)
        if len(truths) < scenario.short.requests:
            raise BrokenRunError(f"the server saw {len(truths)} of {scenario.short.requests} requests (short run)")
    truths, cost, reading = _run(bench, client, scenario)
    return figures(scenario, truths, cost, reading, short)


def _run(bench: Bench, client: Client, scenario: Scenario) -> tuple[list[Truth], Cost, Reading]:
    number = sum(1 for _ in bench.folder.iterdir())
    folder = bench.folder / f"{number:03d}-{scenario.name}-{client.name}"
    folder.mkdir()
    spread = ["--spread"] if scenario.spread and scenario.pace_ms is not None else []
    with serving(bench.binary, folder / "server.jsonl", scenario.pace_ms, bench.server_core, *spread) as server:
        load = Load(server.url, scenario.concurrency, scenario.requests, scenario.max_tokens)
        cost = _measured(bench, client.argv(load, folder), folder)
    try:
        reading = client.read(folder)
    except (OSError, KeyError, IndexError, TypeError, ValueError) as error:
        raise BrokenRunError(f"its report cannot be read: {error!r}") from error
    return server.truths(), cost, reading


def _measured(bench: Bench, command: list[str], folder: Path) -> Cost:
    pin = [] if bench.client_core is None else ["--core", str(bench.client_core)]
    out = folder / "cost.json"
    full = [sys.executable, str(MEASURE), *pin, "--timeout", str(bench.timeout_s), "--out", str(out), "--", *command]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "HF_HUB_DISABLE_TELEMETRY": "1"}
    with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
        code = subprocess.run(full, stdout=stdout, stderr=stderr, env=environment, cwd=folder, check=False).returncode
    if code == 124:
        raise BrokenRunError(f"it did not end within {bench.timeout_s:g} s")
    if code:
        lines = (folder / "stderr").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        raise BrokenRunError(f"exit code {code}: {lines[-1] if lines else 'no message'}")
    cost = json.loads(out.read_text(encoding="utf-8"))
    return Cost(cost["cpu_s"], cost["wall_s"], cost["peak_rss_mb"])
