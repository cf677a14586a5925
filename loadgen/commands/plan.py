"""`loadgen plan`: how much load a server carries within objectives, and how many GPUs a demand takes."""

from pathlib import Path
from typing import Annotated

import typer

from loadgen.commands.given import Runs
from loadgen.store.folder import RUNS


def command(
    run: Annotated[str, typer.Argument(help="A run folder, its name, or latest.")] = "latest",
    slo: Annotated[list[str] | None, typer.Option(help="An objective: ttft_p99=500ms (repeatable).")] = None,
    rate: Annotated[str | None, typer.Option(help="Demand as a rate: 12/s or 720/min.")] = None,
    users: Annotated[int | None, typer.Option(min=1, help="Demand as users; needs --think.")] = None,
    think: Annotated[str | None, typer.Option(help="A user's mean pause before the next request: 20s.")] = None,
    trace: Annotated[Path | None, typer.Option(help="Demand as a trace (JSONL or CSV): its busiest minute.")] = None,
    mix: Annotated[str | None, typer.Option(help="Workloads' shares: code-edit=0.7,chat=0.3.")] = None,
    headroom: Annotated[str, typer.Option(help="Plan for so much more than the demand.")] = "20%",
    spares: Annotated[int, typer.Option(min=0, help="Servers that may fail: 1 is N+1.")] = 1,
    gpus_per_server: Annotated[int, typer.Option(min=1, help="GPUs that one server takes.")] = 1,
    gpu_hour: Annotated[float | None, typer.Option(min=0, help="Price of a GPU hour, in your currency.")] = None,
    gpu_watts: Annotated[float | None, typer.Option(min=0, help="Mean power of a GPU under this load.")] = None,
    measure: Annotated[bool, typer.Option("--measure", help="Start the servers and measure open-loop rates.")] = False,
    rates: Annotated[str | None, typer.Option(help="Rates to measure, else around the estimate: 2/s,4/s.")] = None,
    seconds: Annotated[float, typer.Option(min=2, help="How long each rate is measured.")] = 60.0,
    runs: Runs = RUNS,
    as_json: Annotated[bool, typer.Option("--json", help="Print plan.json, and nothing else.")] = False,
) -> None:
    """Say the highest load within objectives for each profile and the schedule, and the GPUs that a demand takes.

    Writes plan.json, plan.md and plan.html into the run's folder. Exit code 1 if surely no setting meets the
    objectives, 3 if the intervals leave that open or the run has no valid cell with single requests.

    Example: loadgen plan latest --slo ttft_p99=500ms --slo tpot_p99=30ms --users 400 --think 20s
    """
    from loadgen.commands import units
    from loadgen.commands.plan_demand import demand_of
    from loadgen.commands.plan_run import PlanRequest, run_plan

    request = PlanRequest(
        slos=units.slos(slo or []),
        demand=demand_of(rate, users, think, trace, mix),
        headroom=units.share(headroom, "--headroom"),
        spares=spares,
        gpus_per_server=gpus_per_server,
        gpu_hour=gpu_hour,
        gpu_watts=gpu_watts,
        measure=measure or rates is not None,
        rates=tuple(units.rate(text, "--rates") for text in rates.split(",")) if rates else (),
        seconds=seconds,
    )
    raise typer.Exit(run_plan(run, runs, request, as_json=as_json))
