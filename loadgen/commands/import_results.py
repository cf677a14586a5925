"""`loadgen import`: our analysis on results of other load generators."""

from pathlib import Path
from typing import Annotated

import typer

from loadgen.commands.given import Runs
from loadgen.store.folder import RUNS


def command(
    baseline: Annotated[list[Path], typer.Option(help="A result of the server without speculation (repeatable).")],
    profile: Annotated[list[Path], typer.Option(help="One of the server with it (repeatable).")],
    method: Annotated[str, typer.Option(help="Its speculative method, as in its config: ngram, eagle3, …")],
    k: Annotated[int, typer.Option("--k", min=1, help="Its num_speculative_tokens.")],
    name: Annotated[str | None, typer.Option(help="The profile's name in the report; else the method.")] = None,
    workload: Annotated[str, typer.Option(help="A name for what was asked.")] = "imported",
    temperature: Annotated[float, typer.Option(min=0.0, max=2.0, help="At which temperature.")] = 0.0,
    simulated: Annotated[bool, typer.Option("--simulated", help="The servers were simulators; the report says so.")] = (
        False
    ),
    runs: Runs = RUNS,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON, and nothing else.")] = False,
) -> None:
    """Read results of vllm bench serve or sweep, GuideLLM or AIPerf at several concurrencies, and find the break-even.

    Makes a run folder like a sweep's; says what cannot be known from such files. Exit code 3 without a verdict.

    Example: loadgen import --method ngram --k 4 --baseline b1.json --profile n1.json
    """
    from loadgen.commands.import_run import ImportRequest, run_import

    request = ImportRequest(
        tuple(baseline), tuple(profile), name or method, method, k, workload, temperature, simulated
    )
    raise typer.Exit(run_import(request, runs, as_json=as_json))
