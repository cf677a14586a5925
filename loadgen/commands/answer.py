"""`loadgen answer`: sweep over K, schedule, verify; one display, one sentence."""

from pathlib import Path
from typing import Annotated

import typer

from loadgen.commands.given import (
    Against,
    Diagnose,
    Hardware,
    Levels,
    Margin,
    MaxTokens,
    Model,
    Objective,
    ProfilesFolder,
    Progress,
    Runs,
    Seed,
    ServerArgs,
    ServerEnv,
    Slos,
    StartTimeout,
    VllmCommand,
    VllmVersion,
    Window,
)
from loadgen.commands.resume import refuse_other_options
from loadgen.store.folder import RUNS


def command(
    context: typer.Context,
    profile: Annotated[str, typer.Option(help="The profile to answer for.")] = "ngram",
    against: Against = "baseline",
    engine: Annotated[str, typer.Option(help="auto, simulator, docker, process or url.")] = "auto",
    url: Annotated[str | None, typer.Option(help="Running servers: baseline=URL,ngram-k4=URL, …")] = None,
    model: Model = None,
    hardware: Hardware = None,
    workload: Annotated[str, typer.Option(help="The workload, or a file of prompts.")] = "code-edit",
    levels: Levels = None,
    repeats: Annotated[int | None, typer.Option(help="Cells per level.")] = None,
    k: Annotated[str | None, typer.Option("--k", help="The ladder: 1,2,4; auto: K and its halves.")] = None,
    schedule_costs: Annotated[bool, typer.Option(help="Measure each K as a constant schedule too.")] = True,
    objective: Objective = None,
    slo: Slos = None,
    margin: Margin = None,
    quick: Annotated[bool, typer.Option("--quick", help="Levels 1,4,16, two K, short cells; indicative.")] = False,
    input_tokens: Annotated[str | None, typer.Option(help="Prompt length: 500.")] = None,
    temperature: Annotated[str, typer.Option(help="Temperature: 0.")] = "0",
    max_tokens: MaxTokens = None,
    window: Window = None,
    seed: Seed = 1,
    diagnose: Diagnose = False,
    resume: Annotated[
        str | None, typer.Option(help="A run whose answer goes on where it ended: a folder, its name, or latest.")
    ] = None,
    vllm_version: VllmVersion = None,
    vllm_command: VllmCommand = None,
    server_arg: ServerArgs = None,
    server_env: ServerEnv = None,
    start_timeout: StartTimeout = 600.0,
    profiles_folder: ProfilesFolder = Path("server_profiles"),
    runs: Runs = RUNS,
    as_json: Progress = False,
) -> None:
    """Answer speculate or not, how much, and until which load: measure a ladder of K, make the schedule, put it to the
    test. Exit codes: 0 the advice holds, 1 it does not, 2 wrong use, 3 measured without a verdict, 130 interrupted.

    Example: loadgen answer --profile ngram --workload code-edit
    """
    from loadgen.commands.answer_run import AnswerRequest, answer, resume_answer
    from loadgen.commands.goal import wanted_goal
    from loadgen.commands.sweep_setup import SweepRequest
    from loadgen.engines.choose import EngineRequest

    if resume is not None:
        refuse_other_options(context)
        raise typer.Exit(resume_answer(resume, runs, as_json=as_json))
    request = SweepRequest(
        profile=profile,
        against=against,
        workload=workload,
        levels=levels,
        repeats=repeats,
        quick=quick,
        seed=seed,
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
    )
    wanted = EngineRequest(
        name=engine,
        url=url,
        model=model,
        hardware=hardware,
        vllm_command=vllm_command,
        seed=seed,
        vllm_version=vllm_version,
    )
    raise typer.Exit(answer(AnswerRequest(request, wanted, margin, wanted_goal(objective, slo)), runs, as_json=as_json))
