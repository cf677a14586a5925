"""`loadgen sweep`: the front door."""

from pathlib import Path
from typing import Annotated

import typer

from loadgen.commands.given import (
    Against,
    Diagnose,
    Engine,
    Hardware,
    InputLengths,
    Levels,
    MaxTokens,
    Model,
    OutputLengths,
    ProfilesFolder,
    Progress,
    Quick,
    Repeats,
    Runs,
    Seed,
    ServerArgs,
    ServerEnv,
    StartTimeout,
    Urls,
    VllmCommand,
    VllmVersion,
    Window,
    Workers,
)
from loadgen.store.folder import RUNS


def command(
    context: typer.Context,
    profile: Annotated[str, typer.Option(help="Profiles to measure, comma-separated.")] = "ngram",
    against: Against = "baseline",
    engine: Engine = "auto",
    side_by_side: Annotated[
        bool, typer.Option("--side-by-side", help="Docker: both servers at once, a GPU each.")
    ] = False,
    url: Urls = None,
    model: Model = None,
    hardware: Hardware = None,
    workload: Annotated[str, typer.Option(help="Workloads, or files of prompts, comma-separated.")] = "code-edit,chat",
    levels: Levels = None,
    repeats: Repeats = None,
    quick: Quick = False,
    k: Annotated[str | None, typer.Option("--k", help="A ladder of K of each profile: 1,2,4, or auto.")] = None,
    schedule_costs: Annotated[
        bool, typer.Option("--schedule-costs", help="With --k: each K as a constant schedule too.")
    ] = False,
    input_tokens: Annotated[str | None, typer.Option(help="Prompt lengths: 500,4000.")] = None,
    temperature: Annotated[str, typer.Option(help="Temperatures: 0,0.8.")] = "0",
    max_tokens: MaxTokens = None,
    window: Window = None,
    order: Annotated[str | None, typer.Option(help="together, blocks or alternate.")] = None,
    sessions: Annotated[int, typer.Option(help="Server starts per profile; each measures every repeat.")] = 1,
    refine: Annotated[
        bool, typer.Option("--refine", help="Add levels and repeats until the break-even's interval is narrow.")
    ] = False,
    half_width: Annotated[str, typer.Option(help="With --refine: half of the wanted interval's width.")] = "10%",
    budget: Annotated[str | None, typer.Option(help="With --refine: end refining by then: 90s, 10m.")] = None,
    seed: Seed = 1,
    input_lengths: InputLengths = None,
    output_lengths: OutputLengths = None,
    ignore_eos: Annotated[bool, typer.Option("--ignore-eos", help="Force every output to its cap.")] = False,
    diagnose: Diagnose = False,
    workers: Workers = 1,
    resume: Annotated[str | None, typer.Option(help="A run to go on with; --levels and --repeats extend it.")] = None,
    vllm_version: VllmVersion = None,
    vllm_command: VllmCommand = None,
    server_arg: ServerArgs = None,
    server_env: ServerEnv = None,
    start_timeout: StartTimeout = 600.0,
    profiles_folder: ProfilesFolder = Path("server_profiles"),
    runs: Runs = RUNS,
    as_json: Progress = False,
) -> None:
    """Measure where a profile stops paying off: baseline and profile over concurrency, then one sentence of answer.
    Exit codes: 0 an answer (on one workload at least), 2 wrong use, 3 measured without a verdict, 130 interrupted.

    Example: loadgen sweep --profile ngram --workload code-edit,chat --levels 1,2,4,8,16,32
    """
    from loadgen.commands.extend import Asked
    from loadgen.commands.sweep_run import resume_sweep, sweep
    from loadgen.commands.sweep_setup import SweepRequest
    from loadgen.engines.choose import EngineRequest

    request = SweepRequest(
        profile=profile,
        against=against,
        workload=workload,
        levels=levels,
        repeats=repeats,
        quick=quick,
        seed=seed,
        order=order,
        sessions=sessions,
        refine=refine,
        half_width=half_width,
        budget=budget,
        k=k,
        schedule_costs=schedule_costs,
        input_tokens=input_tokens,
        temperature=temperature,
        max_tokens=max_tokens,
        window_s=window,
        model=model,
        hardware=hardware,
        profiles_folder=str(profiles_folder),
        server_args=tuple(server_arg or ()),
        server_env=tuple(server_env or ()),
        start_timeout_s=start_timeout,
        diagnose=diagnose,
        input_lengths=input_lengths,
        output_lengths=output_lengths,
        ignore_eos=ignore_eos,
        workers=workers,
    )
    wanted = EngineRequest(
        name=engine,
        url=url,
        model=model,
        hardware=hardware,
        vllm_command=vllm_command,
        seed=seed,
        side_by_side=side_by_side,
        vllm_version=vllm_version,
    )
    if resume is not None:
        given = {name for name in context.params if _given(context, name)}
        asked = Asked(frozenset(given - {"resume", "runs", "as_json"}), request, wanted)
        raise typer.Exit(resume_sweep(resume, runs, as_json=as_json, asked=asked))
    raise typer.Exit(sweep(request, wanted, runs, as_json=as_json))


def _given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")
