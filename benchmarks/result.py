"""A result file, and its text: what a run prints and what docs/performance.md shows."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.figures import Figures
from benchmarks.goals import REFERENCE, goal_table, goals
from benchmarks.scenarios import Scenario
from benchmarks.table import command_table, scenario_table

FOOT = (
    "Median [least, most] over n alternating rounds; ratios and differences are taken within a round. "
    "\\* the client's own mean and p99 against those of the server's log, since it tells no single request."
)


@dataclass
class Result:
    """One run of the benchmark; `runs` holds, by scenario and client, one entry a round (None: it failed)."""

    date: str
    machine: str
    server_core: int | None
    client_core: int | None
    versions: dict[str, str]
    whats: dict[str, str]
    missing: dict[str, str]
    scenarios: list[Scenario]
    runs: dict[str, dict[str, list[Figures | None]]]
    faults: list[str] = field(default_factory=list)
    schema: int = 1

    def text(self) -> str:
        """Markdown: where and with what, each scenario, the goals."""
        pinned = "not pinned (one core)"
        if self.client_core is not None:
            pinned = f"server on core {self.server_core}, client on core {self.client_core}"
        lines = [f"{self.date}, {self.machine}; {pinned}.", ""]
        lines += [f"- **{name}**: {self.whats[name]} ({version})" for name, version in self.versions.items()]
        lines += [f"- **{name}**: not measured, because {reason}" for name, reason in self.missing.items()]
        lines += [f"- failed: {fault}" for fault in self.faults]
        for scenario in self.scenarios:
            lines += ["", scenario_table(scenario, self.runs[scenario.name], REFERENCE)]
        lines += ["", command_table(self.runs), "", FOOT]
        promises = goals(self.runs)
        if any(goal.met is not None for goal in promises):
            lines += ["", goal_table(promises)]
        return "\n".join(lines)

    def write(self, path: Path) -> None:
        """The result as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")


def read_result(path: Path) -> Result:
    """What `write` wrote. Raises OSError, KeyError, TypeError or ValueError if it is something else."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    if raw.get("schema") != 1:
        raise ValueError(f"{path} is not a benchmark result of schema 1")
    raw["scenarios"] = [Scenario(**one) for one in raw["scenarios"]]
    raw["runs"] = {
        scenario: {client: [one and Figures(**one) for one in rows] for client, rows in of.items()}
        for scenario, of in raw["runs"].items()
    }
    return Result(**raw)


def merged(results: list[Result]) -> Result:
    """Several runs on one machine as one (the long memory scenario beside the rest, say); a scenario that stands in
    two of them is taken from the later file. Raises ValueError for runs of different machines.
    """
    first, *others = results
    whole = Result(**vars(first))
    for one in others:
        if one.machine != first.machine:
            raise ValueError(f"these results come from two machines: {first.machine} and {one.machine}")
        whole.date = f"{whole.date} and {one.date}"
        whole.versions = whole.versions | one.versions
        whole.whats = whole.whats | one.whats
        whole.missing = {name: why for name, why in (whole.missing | one.missing).items() if name not in whole.versions}
        fresh = {scenario.name for scenario in one.scenarios}
        whole.scenarios = [kept for kept in whole.scenarios if kept.name not in fresh] + one.scenarios
        whole.runs = whole.runs | one.runs
        whole.faults = whole.faults + one.faults
    return whole
