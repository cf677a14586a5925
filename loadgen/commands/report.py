"""`loadgen report`: the reports of a run, written again; or several runs on one page."""

from pathlib import Path
from typing import Annotated

import typer

from loadgen.commands.given import Runs
from loadgen.store.folder import RUNS


def command(
    run: Annotated[list[str] | None, typer.Argument(help="Runs: folders, their names, or latest (default).")] = None,
    out: Annotated[Path | None, typer.Option(help="Several runs: the page's file, else in the runs' folder.")] = None,
    parquet: Annotated[bool, typer.Option("--parquet", help="One run: write requests.parquet too.")] = False,
    runs: Runs = RUNS,
) -> None:
    """Write summary.json, report.html, report.md and cells.csv of a run again; or put several runs on one page.

    A run of loadgen lossless gets its report.html and report.md.

    Example: loadgen report latest
    """
    from loadgen.errors import UsageError

    names = list(dict.fromkeys(run or ["latest"]))
    if len(names) > 1:
        if parquet:
            raise UsageError("--parquet is for one run; name it alone.")
        typer.echo(_several(names, runs, out))
        return
    if out is not None:
        raise UsageError("--out is for several runs; one run's reports stand in its folder.")
    _one(names[0], runs, parquet=parquet)


def _one(name: str, runs: Path, *, parquet: bool) -> None:
    from loadgen.commands.conclude import find_findings, write
    from loadgen.commands.lossless_files import lossless_meant, write_again
    from loadgen.errors import UsageError
    from loadgen.store.folder import find_run
    from loadgen.store.lock import FolderLock

    quality = lossless_meant(name, runs)
    if quality is not None:
        if parquet:
            raise UsageError("--parquet is for the requests of a sweep; a run of loadgen lossless has none.")
        with FolderLock(quality.path):
            for path in write_again(quality).values():
                typer.echo(path)
        return
    folder = find_run(name, runs)
    with FolderLock(folder.path):
        paths = write(folder, find_findings(folder))
        if parquet:
            from loadgen.report.parquet import write_parquet

            paths["requests.parquet"] = write_parquet(folder, simulated=folder.manifest().simulated)
    for path in paths.values():
        typer.echo(path)


def _several(names: list[str], runs: Path, out: Path | None) -> Path:
    """The page's path, written."""
    from loadgen.commands.several import run_facts
    from loadgen.report.side_by_side import render_side_by_side
    from loadgen.store.folder import find_run, write_whole

    facts = [run_facts(find_run(name, runs)) for name in names]
    page = render_side_by_side(facts)
    path = out if out is not None else runs / "side-by-side.html"
    if path.is_dir():
        path = path / "side-by-side.html"
    return write_whole(path, page.encode("utf-8", errors="replace"))
