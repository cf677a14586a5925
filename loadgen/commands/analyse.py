"""`loadgen analyse`: what a run says, from the cells on disk."""

from typing import Annotated

import typer

from loadgen.commands.given import Runs
from loadgen.store.folder import RUNS


def command(
    run: Annotated[str, typer.Argument(help="A run folder, its name, or latest.")] = "latest",
    runs: Runs = RUNS,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON, and nothing else.")] = False,
) -> None:
    """Analyse a run again and print the answer; writes nothing.

    Example: loadgen analyse latest --json
    """
    from loadgen.commands.conclude import answer_code, find_findings, show
    from loadgen.store.folder import find_run

    folder = find_run(run, runs)
    findings = find_findings(folder)
    show(folder, findings, as_json=as_json)
    raise typer.Exit(answer_code(findings))
