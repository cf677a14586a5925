"""The lint of a stack's files: what is given, or our own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loadgen.commands.lint_compose import lint_compose
from loadgen.commands.lint_compose_file import compose_ports, read_compose
from loadgen.commands.lint_dashboard import lint_dashboard, lint_provisioning
from loadgen.commands.lint_finding import Finding
from loadgen.commands.lint_prometheus import Checked, lint_prometheus
from loadgen.errors import UsageError


@dataclass(frozen=True)
class Files:
    """What to lint; they are checked against each other where they are given together."""

    compose: tuple[Path, ...] = ()
    prometheus: Path | None = None
    dashboards: tuple[Path, ...] = ()
    provisioning: tuple[Path, ...] = ()


def own_files(folder: Path) -> Files:
    """Our own stack's files in this project folder; UsageError if they are not there."""
    if not (folder / "docker-compose.yml").is_file():
        raise UsageError(f"{folder} has no docker-compose.yml; run in loadgen's folder, or name files with --compose.")
    dashboards = folder / "dashboards"
    return Files(
        compose=(folder / "docker-compose.yml",),
        prometheus=dashboards / "prometheus.yml",
        dashboards=tuple(sorted((dashboards / "grafana").glob("*.json"))),
        provisioning=tuple(sorted((dashboards / "provisioning" / "datasources").glob("*.yaml"))),
    )


def home_folder() -> Path:
    """The project's folder: the working folder if it has a Compose file, else the one beside the package."""
    here = Path.cwd()
    return here if (here / "docker-compose.yml").is_file() else Path(__file__).resolve().parents[2]


def provisioning_near(files: Files) -> tuple[Path, ...]:
    """Files of data sources in or below the folders of the given files, at most three levels down."""
    given = [*files.compose, *files.dashboards, *([files.prometheus] if files.prometheus else [])]
    folders = {path.resolve().parent for path in given}
    patterns = [f"{'*/' * depth}datasources/*.y*ml" for depth in range(4)]
    return tuple(sorted({path for folder in folders for pattern in patterns for path in folder.glob(pattern)}))


def lint_files(files: Files) -> list[Finding]:
    """All findings, file by file; UsageError for a file that cannot be read."""
    found = [finding for path in files.compose for finding in lint_compose(path)]
    services = tuple(ports for path in files.compose for ports in compose_ports(read_compose(path)))
    checked = lint_prometheus(files.prometheus, services) if files.prometheus else None
    found += checked.findings if checked else ()
    uids = _provisioned(files.provisioning, checked, found)
    recorded = checked.recorded if checked else frozenset()
    for path in files.dashboards:
        found += lint_dashboard(path, uids if files.provisioning else None, recorded)
    return found


def _provisioned(paths: Sequence[Path], checked: Checked | None, found: list[Finding]) -> set[str]:
    """The uids of the data sources that Grafana will have."""
    uids: set[str] = set()
    for path in paths:
        for file in sorted([*path.rglob("*.yaml"), *path.rglob("*.yml")]) if path.is_dir() else [path]:
            findings, mine = lint_provisioning(file, checked.scrape_interval if checked else None)
            found += findings
            uids |= mine
    return uids
