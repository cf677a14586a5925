"""`loadgen report`: the reports of a run, written again."""

from pathlib import Path
from typing import Annotated

import typer

from loadgen.store.folder import RUNS


def command(
    run: Annotated[str, typer.Argument(help="A run folder, its name, or latest.")] = "latest",
    runs: Annotated[Path, typer.Option(help="The folder of the runs.")] = RUNS,
) -> None:
    """Write summary.json, report.html, report.md and cells.csv of a run again.

    Example: loadgen report latest
    """
    from loadgen.commands.conclude import find_findings, write
    from loadgen.store.folder import find_run
    from loadgen.store.lock import FolderLock

    folder = find_run(run, runs)
    with FolderLock(folder.path):
        paths = write(folder, find_findings(folder))
    for path in paths.values():
        typer.echo(path)
