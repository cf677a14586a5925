"""`loadgen schedule`: what to write into vLLM's config, from runs that are measured."""

from typing import Annotated

import typer

from loadgen.commands.given import Runs, Slos
from loadgen.store.folder import RUNS


def command(
    run: Annotated[list[str] | None, typer.Argument(help="Run folders, their names, or latest.")] = None,
    objective: Annotated[str | None, typer.Option(help="What is best: throughput or tpot; else the run's own.")] = None,
    slo: Slos = None,
    runs: Runs = RUNS,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per run, and nothing else.")] = False,
) -> None:
    """Print the batch-size schedule in vLLM's own syntax, what it gains over the best static K and over no speculation,
    or why something else is better. With --slo a setting that does not surely keep the limits at a load is out there.
    Writes nothing. Exit codes: 0 an advice, 2 wrong use, 3 none yet.

    Example: loadgen schedule latest --slo ttft_p99=500ms --slo tpot_p99=30ms
    """
    from loadgen.commands.goal import wanted_goal
    from loadgen.commands.schedule_show import exit_code, find, print_found
    from loadgen.store.folder import find_run

    goal = wanted_goal(objective, slo)
    found = [find(find_run(name, runs), goal) for name in run or ["latest"]]
    print_found(found, as_json=as_json)
    raise typer.Exit(exit_code(found))
