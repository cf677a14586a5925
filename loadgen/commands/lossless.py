"""`loadgen lossless`: does a profile answer as the baseline does?"""

from pathlib import Path
from typing import Annotated

import typer

from loadgen.commands.given import (
    Engine,
    Hardware,
    Model,
    ProfilesFolder,
    Runs,
    ServerArgs,
    ServerEnv,
    StartTimeout,
    Urls,
    VllmCommand,
)
from loadgen.commands.resume import refuse_other_options
from loadgen.store.folder import RUNS


def command(
    context: typer.Context,
    profile: Annotated[str, typer.Option(help="The profile to test.")] = "ngram",
    against: Annotated[str, typer.Option(help="The profile without speculation.")] = "baseline",
    engine: Engine = "auto",
    url: Urls = None,
    model: Model = None,
    hardware: Hardware = None,
    workload: Annotated[str, typer.Option(help="The workload, or a file of prompts.")] = "code-edit",
    prompts: Annotated[int | None, typer.Option(min=1, help="Prompts of the greedy part: 40, on a CPU 16.")] = None,
    max_tokens: Annotated[int, typer.Option(min=2, help="Cap of each greedy answer.")] = 64,
    temperature: Annotated[str, typer.Option(help="0 is always tested; each one above 0 is sampled.")] = "0,0.8",
    samples: Annotated[
        int | None, typer.Option(min=1, help="Samples per server and prefix: 1500, on a CPU 300.")
    ] = None,
    prefixes: Annotated[int, typer.Option(min=1, help="Prefixes that are sampled after.")] = 4,
    margin: Annotated[float, typer.Option(help="Distance of distributions that still is the same quality.")] = 0.1,
    dtype: Annotated[str | None, typer.Option(help="The weights': float32, 16-bit or quantised.")] = None,
    seed: Annotated[int, typer.Option(help="Prompts and samples follow from it.")] = 1,
    seeds: Annotated[
        str, typer.Option(help="A seed with each sample: on, off, or auto (a GPU and the simulator: on; a CPU: off).")
    ] = "auto",
    resume: Annotated[
        str | None, typer.Option(help="A test to go on with: folder, name, or latest. Only --seeds can be changed.")
    ] = None,
    vllm_command: VllmCommand = None,
    server_arg: ServerArgs = None,
    server_env: ServerEnv = None,
    start_timeout: StartTimeout = 600.0,
    profiles_folder: ProfilesFolder = Path("server_profiles"),
    runs: Runs = RUNS,
    as_json: Annotated[bool, typer.Option("--json", help="The whole finding as JSON on stdout.")] = False,
) -> None:
    """Test whether speculation changes what the model says. Exit codes: 0 same quality, 1 differs,
    2 wrong use, 3 not tested, 130 interrupted.

    Example: loadgen lossless --profile ngram --temperature 0,0.8
    """
    from loadgen.commands.lossless_run import lossless
    from loadgen.commands.lossless_run import resume as go_on
    from loadgen.commands.lossless_setup import LosslessRequest
    from loadgen.commands.sweep_setup import SweepRequest
    from loadgen.engines.choose import EngineRequest

    if resume is not None:
        refuse_other_options(context, "seeds")
        raise typer.Exit(go_on(resume, runs, seeds, as_json=as_json))
    request = SweepRequest(
        profile=profile,
        against=against,
        workload=workload,
        levels="1",
        seed=seed,
        temperature=temperature,
        max_tokens=max_tokens,
        model=model,
        hardware=hardware,
        profiles_folder=str(profiles_folder),
        server_args=tuple(server_arg or ()),
        server_env=tuple(server_env or ()),
        start_timeout_s=start_timeout,
    )
    wanted = EngineRequest(name=engine, url=url, model=model, hardware=hardware, vllm_command=vllm_command, seed=seed)
    asked = LosslessRequest(request, wanted, prompts, samples, prefixes, margin, dtype, seeds)
    raise typer.Exit(lossless(asked, runs, as_json=as_json))
