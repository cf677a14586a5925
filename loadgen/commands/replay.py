"""`loadgen replay`: a finished run into Prometheus, so that Grafana shows it."""

from pathlib import Path
from typing import Annotated

import typer

from loadgen.commands.given import Runs
from loadgen.store.folder import RUNS


def command(
    run: Annotated[str, typer.Argument(help="A run: a folder, its name, or latest.")],
    to: Annotated[str, typer.Option(help="Prometheus' address; it must take remote writes.")] = "http://127.0.0.1:9090",
    output: Annotated[Path | None, typer.Option(help="Write OpenMetrics text here instead, for promtool.")] = None,
    runs: Runs = RUNS,
) -> None:
    """Write a finished run into Prometheus at the times at which it ran, and say where in Grafana to look.

    With --output: promtool tsdb create-blocks-from openmetrics FILE FOLDER makes blocks of it.

    Example: loadgen replay latest --to http://127.0.0.1:9090
    """
    from loadgen.commands.conclude import find_findings
    from loadgen.commands.exporter_tail import read_summary
    from loadgen.commands.replay_samples import replay_series, run_info
    from loadgen.commands.replay_write import open_metrics, remote_write
    from loadgen.errors import UsageError
    from loadgen.report.exported import shown_findings
    from loadgen.report.summary import summary
    from loadgen.store.folder import find_run

    folder = find_run(run, runs)
    if not folder.cells():
        raise UsageError(f"{folder.path} has no measured cell; resume the run with loadgen sweep --resume {run}.")
    manifest = folder.manifest()
    found = read_summary(folder.path / "summary.json") or summary(find_findings(folder), manifest)
    shown = [*shown_findings(found), run_info(manifest, str(found.get("model") or ""))]
    series = replay_series(folder, shown)
    count = open_metrics(series, output) if output else remote_write(series, to)
    stamps = [at for one in series for at, _ in one.points]
    simulated = "SIMULATED: " if manifest.simulated else ""
    typer.echo(f"{simulated}{count} samples of {folder.run_id} are in {output or to}.")
    place = f"?var-run={folder.run_id}&from={min(stamps)}&to={max(stamps)}"
    typer.echo(f"Grafana: http://127.0.0.1:3000/d/loadgen-break-even{place}")
