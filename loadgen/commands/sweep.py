"""`loadgen sweep`: the front door."""

from pathlib import Path
from typing import Annotated

import typer

from loadgen.store.folder import RUNS


def command(
    profile: Annotated[str, typer.Option(help="Profiles to measure, comma-separated.")] = "ngram",
    against: Annotated[str, typer.Option(help="The profile to compare with.")] = "baseline",
    engine: Annotated[str, typer.Option(help="auto, docker, process, simulator or url.")] = "auto",
    side_by_side: Annotated[
        bool, typer.Option("--side-by-side", help="Docker: both servers at once, a GPU each.")
    ] = False,
    url: Annotated[str | None, typer.Option(help="Running servers: baseline=URL,ngram=URL.")] = None,
    model: Annotated[str | None, typer.Option(help="Target model: a name or a folder.")] = None,
    hardware: Annotated[str | None, typer.Option(help="The simulator's hardware preset.")] = None,
    workload: Annotated[str, typer.Option(help="Workloads, or files of prompts, comma-separated.")] = "code-edit,chat",
    levels: Annotated[str | None, typer.Option(help="Requests in flight: 1,2,4,8,16,32.")] = None,
    repeats: Annotated[int | None, typer.Option(help="Cells per level; none below 3 has an interval.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Levels 1,4,16 and short cells; indicative.")] = False,
    k: Annotated[str | None, typer.Option("--k", help="A ladder of K of each profile: 1,2,4, or auto.")] = None,
    schedule_costs: Annotated[
        bool, typer.Option("--schedule-costs", help="With --k: each K as a constant schedule too.")
    ] = False,
    input_tokens: Annotated[str | None, typer.Option(help="Prompt lengths: 500,4000.")] = None,
    temperature: Annotated[str, typer.Option(help="Temperatures: 0,0.8.")] = "0",
    max_tokens: Annotated[int | None, typer.Option(help="Cap of each output.")] = None,
    window: Annotated[float | None, typer.Option(help="Seconds that each cell measures.")] = None,
    order: Annotated[str | None, typer.Option(help="together, blocks or alternate.")] = None,
    sessions: Annotated[int, typer.Option(help="Server starts per profile; each measures every repeat.")] = 1,
    refine: Annotated[
        bool, typer.Option("--refine", help="Add levels and repeats until the break-even's interval is narrow.")
    ] = False,
    half_width: Annotated[str, typer.Option(help="With --refine: half of the wanted interval's width.")] = "10%",
    budget: Annotated[str | None, typer.Option(help="With --refine: end refining by then: 90s, 10m.")] = None,
    seed: Annotated[int, typer.Option(help="Prompts, sampling and level order follow from it.")] = 1,
    input_lengths: Annotated[
        str | None, typer.Option(help="Prompt lengths drawn per prompt: uniform:200-800, lognormal:500,0.5.")
    ] = None,
    output_lengths: Annotated[str | None, typer.Option(help="Caps of the outputs, drawn likewise.")] = None,
    ignore_eos: Annotated[bool, typer.Option("--ignore-eos", help="Force every output to its cap.")] = False,
    diagnose: Annotated[
        bool, typer.Option("--diagnose", help="A short cell per profile and workload more: tokens per chunk.")
    ] = False,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Load processes: beyond one core.")] = 1,
    resume: Annotated[str | None, typer.Option(help="A run to go on with: a folder, its name, or latest.")] = None,
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
    """Measure where a profile stops paying off: baseline and profile over concurrency, then one sentence of answer.

    Example: loadgen sweep --profile ngram --workload code-edit,chat --levels 1,2,4,8,16,32
    """
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
        raise typer.Exit(resume_sweep(resume, runs, as_json=as_json))
    raise typer.Exit(sweep(request, wanted, runs, as_json=as_json))
