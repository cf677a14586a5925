"""`loadgen answer`: sweep over K, schedule, verify; one display, one sentence."""

from pathlib import Path
from typing import Annotated

import typer

from loadgen.store.folder import RUNS


def command(
    profile: Annotated[str, typer.Option(help="The profile to answer for.")] = "ngram",
    against: Annotated[str, typer.Option(help="The profile to compare with.")] = "baseline",
    engine: Annotated[str, typer.Option(help="auto, simulator, docker, process or url.")] = "auto",
    url: Annotated[str | None, typer.Option(help="Running servers: baseline=URL,ngram-k4=URL, …")] = None,
    model: Annotated[str | None, typer.Option(help="Target model: a name or a folder.")] = None,
    hardware: Annotated[str | None, typer.Option(help="The simulator's hardware preset.")] = None,
    workload: Annotated[str, typer.Option(help="The workload, or a file of prompts.")] = "code-edit",
    levels: Annotated[str | None, typer.Option(help="Requests in flight: 1,2,4,8,16,32.")] = None,
    repeats: Annotated[int | None, typer.Option(help="Cells per level.")] = None,
    k: Annotated[str | None, typer.Option("--k", help="The ladder: 1,2,4; auto: K and its halves.")] = None,
    schedule_costs: Annotated[bool, typer.Option(help="Measure each K as a constant schedule too.")] = True,
    objective: Annotated[str | None, typer.Option(help="What is best: throughput or tpot.")] = None,
    slo: Annotated[list[str] | None, typer.Option(help="Only within a limit: ttft_p99=500ms (repeatable).")] = None,
    margin: Annotated[float | None, typer.Option(help="What still counts as no worse: 0.02 is 2 %.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Levels 1,4,16, two K, short cells; indicative.")] = False,
    input_tokens: Annotated[str | None, typer.Option(help="Prompt length: 500.")] = None,
    temperature: Annotated[str, typer.Option(help="Temperature: 0.")] = "0",
    max_tokens: Annotated[int | None, typer.Option(help="Cap of each output.")] = None,
    window: Annotated[float | None, typer.Option(help="Seconds that each cell measures.")] = None,
    seed: Annotated[int, typer.Option(help="Prompts, sampling and level order follow from it.")] = 1,
    diagnose: Annotated[
        bool, typer.Option("--diagnose", help="A short cell per profile and workload more: tokens per chunk.")
    ] = False,
    resume: Annotated[
        str | None, typer.Option(help="A run whose answer goes on where it ended: a folder, its name, or latest.")
    ] = None,
    vllm_version: Annotated[str | None, typer.Option(help="The simulator: behave as this vLLM, such as 0.26.")] = None,
    vllm_command: Annotated[str | None, typer.Option(help="How a local vLLM starts.", envvar="VLLM_COMMAND")] = None,
    server_arg: Annotated[list[str] | None, typer.Option(help="An argument for every server (repeatable).")] = None,
    server_env: Annotated[list[str] | None, typer.Option(help="NAME=VALUE for every server (repeatable).")] = None,
    start_timeout: Annotated[float, typer.Option(help="Seconds a server may take to answer.")] = 600.0,
    profiles_folder: Annotated[Path, typer.Option("--profiles", help="Folder of profiles.")] = Path("server_profiles"),
    runs: Annotated[Path, typer.Option(help="The folder of the runs.")] = RUNS,
    as_json: Annotated[
        bool, typer.Option("--json", help="Progress as JSON lines on stderr, summary on stdout.")
    ] = False,
) -> None:
    """Answer speculate or not, how much, and until which load: measure a ladder of K, make the schedule, put it to the
    test. Ends with 0 if the advice holds, 1 if it does not, 3 if that cannot be told yet.

    Example: loadgen answer --profile ngram --workload code-edit
    """
    from loadgen.commands.answer_run import AnswerRequest, answer, resume_answer
    from loadgen.commands.goal import wanted_goal
    from loadgen.commands.sweep_setup import SweepRequest
    from loadgen.engines.choose import EngineRequest

    if resume is not None:
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
