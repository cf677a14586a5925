"""`loadgen schedule`: what to write into vLLM's config, from runs that are measured."""

from pathlib import Path
from typing import Annotated

import typer

from loadgen.store.folder import RUNS


def command(
    run: Annotated[list[str] | None, typer.Argument(help="Run folders, their names, or latest.")] = None,
    objective: Annotated[str, typer.Option(help="What is best: throughput or tpot.")] = "throughput",
    runs: Annotated[Path, typer.Option(help="The folder of the runs.")] = RUNS,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per run, and nothing else.")] = False,
) -> None:
    """Print the batch-size schedule in vLLM's own syntax, what it gains over the best static K and over no speculation,
    or why something else is better. Writes nothing.

    Example: loadgen schedule latest --objective tpot
    """
    from loadgen.commands.schedule_show import exit_code, find, print_found
    from loadgen.store.folder import find_run

    found = [find(find_run(name, runs), objective) for name in run or ["latest"]]
    print_found(found, as_json=as_json)
    raise typer.Exit(exit_code(found))
