"""The lint of a stack's files: what is given, or our own."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from loadgen.commands.lint_compose import lint_compose
from loadgen.commands.lint_compose_file import compose_ports, read_compose
from loadgen.commands.lint_dashboard import lint_dashboard, lint_provisioning
from loadgen.commands.lint_finding import Finding
from loadgen.commands.lint_prometheus import Checked, ComposePorts, lint_prometheus
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
    found: list[Finding] = []
    services: list[ComposePorts] = []
    for path in files.compose:
        with _shaped(path, "docker compose config"):
            found += lint_compose(path)
            services += compose_ports(read_compose(path))
    checked = None
    if files.prometheus:
        with _shaped(files.prometheus, "promtool check config"):
            checked = lint_prometheus(files.prometheus, tuple(services))
            found += checked.findings
    uids = _provisioned(files.provisioning, checked, found)
    recorded = checked.recorded if checked else frozenset()
    for path in files.dashboards:
        with _shaped(path, "Grafana's import"):
            found += lint_dashboard(path, uids if files.provisioning else None, recorded)
    return found


@contextmanager
def _shaped(path: Path, tool: str) -> Iterator[None]:
    """UsageError for a file whose values have another shape than its format has, whichever one of hundreds it is: the
    format's own tool names the place.
    """
    try:
        yield
    except (AttributeError, TypeError, KeyError, IndexError) as error:
        raise UsageError(
            f"{path} has a value of another shape than its format takes (a text where a list belongs, or the like); "
            f"{tool} says where."
        ) from error


def _provisioned(paths: Sequence[Path], checked: Checked | None, found: list[Finding]) -> set[str]:
    """The uids of the data sources that Grafana will have."""
    uids: set[str] = set()
    for path in paths:
        for file in sorted([*path.rglob("*.yaml"), *path.rglob("*.yml")]) if path.is_dir() else [path]:
            with _shaped(file, "Grafana's log"):
                findings, mine = lint_provisioning(file, checked.scrape_interval if checked else None)
                found += findings
                uids |= mine
    return uids
