"""`loadgen runs`: the runs that there are."""

from typing import Annotated

import typer

from loadgen.commands.given import Runs
from loadgen.store.folder import RUNS, list_runs, unreadable_runs


def command(
    runs: Runs = RUNS,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """List the runs, oldest first, with what each one measured.

    Example: loadgen runs
    """
    from loadgen.commands.lossless_files import lossless_runs, row_of
    from loadgen.store.codec import encode

    found = list_runs(runs)
    damaged = unreadable_runs(runs)
    quality = [row_of(folder) for folder in lossless_runs(runs)]
    for error in damaged.values():
        typer.echo(f"loadgen: {error}", err=True)
    if not found and not damaged and not quality and not as_json:
        typer.echo(f"There is no run under {runs}/ yet; `make sweep PROFILE=ngram` makes one.")
    for run in found:
        manifest = run.manifest()
        workloads = tuple(dict.fromkeys(c.workload for c in manifest.conditions))
        planned = len(manifest.profiles) * len(manifest.conditions) * len(manifest.levels)
        row = {
            "run": run.run_id,
            "engine": manifest.engine,
            "simulated": manifest.simulated,
            "profiles": manifest.profiles,
            "workloads": workloads,
            "levels": manifest.levels,
            "cells": len(run.cells()),
            "cells_planned": planned * manifest.repeats * manifest.sessions,
        }
        if as_json:
            typer.echo(encode(row).decode())
            continue
        mark = " SIMULATED" if manifest.simulated else ""
        typer.echo(
            f"{run.run_id}  {manifest.engine}{mark}  {', '.join(manifest.profiles)} on {', '.join(workloads)}"
            f"  cells {row['cells']}/{row['cells_planned']}"
        )
    for row in quality:
        if as_json:
            typer.echo(encode(row).decode())
            continue
        mark = " SIMULATED" if row["simulated"] else ""
        typer.echo(f"{row['run']}  {row['engine']}{mark}  lossless: {row['quality']}")
