"""`loadgen verify`: does the advice of a run hold when it is measured again?"""

from typing import Annotated

import typer

from loadgen.commands.given import Margin, Objective, Progress, Runs, Slos, Window
from loadgen.store.folder import RUNS


def command(
    run: Annotated[str, typer.Argument(help="A run folder, its name, or latest.")] = "latest",
    engine: Annotated[str | None, typer.Option(help="Another engine than the run's: docker, process, …")] = None,
    url: Annotated[str | None, typer.Option(help="Running servers: baseline=URL,ngram-schedule=URL.")] = None,
    objective: Objective = None,
    slo: Slos = None,
    margin: Margin = None,
    levels: Annotated[str | None, typer.Option(help="Other loads than the run's; edges are added.")] = None,
    repeats: Annotated[int | None, typer.Option(help="Cells per load, server and session.")] = None,
    sessions: Annotated[int | None, typer.Option(help="Starts of each server.")] = None,
    window: Window = None,
    open_loop: Annotated[float | None, typer.Option("--open-loop", help="Seconds across each edge; 0: none.")] = None,
    resume: Annotated[
        str | None, typer.Option(help="A run whose verification goes on where it ended: a folder, its name, or latest.")
    ] = None,
    runs: Runs = RUNS,
    as_json: Progress = False,
) -> None:
    """Put a run's advice to the test: fresh prompts, the schedule beside the best static K and no speculation, at every
    load and at the schedule's edges. Exit codes: 0 it holds, 1 it does not, 2 wrong use, 3 measured without a verdict,
    130 interrupted.

    Example: loadgen verify latest --margin 0.03
    """
    from loadgen.commands.goal import wanted_goal
    from loadgen.commands.verify_run import verify_command
    from loadgen.commands.verify_setup import VerifyRequest
    from loadgen.store.folder import find_run

    asked = VerifyRequest(
        engine=engine,
        url=url,
        margin=margin,
        levels=levels,
        repeats=repeats,
        sessions=sessions,
        window_s=window,
        open_loop_s=open_loop,
        goal=wanted_goal(objective, slo),
    )
    raise typer.Exit(verify_command(find_run(resume or run, runs), asked, resumed=resume is not None, as_json=as_json))
