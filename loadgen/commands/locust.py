"""`loadgen locust`: the levels walked by Locust's master and workers."""

from pathlib import Path
from typing import Annotated

import typer

from loadgen.commands.given import (
    Against,
    Hardware,
    Levels,
    MaxTokens,
    ProfilesFolder,
    Quick,
    Repeats,
    Runs,
    Seed,
    Window,
)
from loadgen.store.folder import RUNS


def command(
    profile: Annotated[str, typer.Option(help="Profiles to measure, comma-separated.")] = "ngram",
    against: Against = "baseline",
    url: Annotated[
        str | None, typer.Option(help="Running servers: baseline=URL,ngram=URL; else simulated ones.")
    ] = None,
    hardware: Hardware = None,
    workload: Annotated[str, typer.Option(help="Workloads, or files of prompts, comma-separated.")] = "code-edit",
    levels: Levels = None,
    repeats: Repeats = None,
    quick: Quick = False,
    max_tokens: MaxTokens = None,
    window: Window = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Locust workers.")] = 2,
    seed: Seed = 1,
    headless: Annotated[bool, typer.Option("--headless", help="No web interface; ends by itself.")] = False,
    web_host: Annotated[str, typer.Option(help="Where the web interface listens.")] = "127.0.0.1",
    web_port: Annotated[int, typer.Option(help="Its port.")] = 8089,
    bind_host: Annotated[str, typer.Option(help="Where the master listens for workers.")] = "127.0.0.1",
    bind_port: Annotated[int, typer.Option(help="Its port; 0 takes a free one.")] = 0,
    remote_workers: Annotated[int, typer.Option(min=0, help="Workers to wait for that other machines start.")] = 0,
    profiles_folder: ProfilesFolder = Path("server_profiles"),
    runs: Runs = RUNS,
    as_json: Annotated[bool, typer.Option("--json", help="The summary as JSON.")] = False,
) -> None:
    """Sweep through Locust: its web interface shows the run, its workers count users, our client sends the requests.

    Example: loadgen locust --url baseline=http://127.0.0.1:8000,ngram=http://127.0.0.1:8001 --workers 4
    """
    from loadgen.commands.locust_run import LocustOptions, run_locust
    from loadgen.commands.sweep_setup import SweepRequest
    from loadgen.engines.choose import EngineRequest

    request = SweepRequest(
        profile=profile,
        against=against,
        workload=workload,
        levels=levels,
        repeats=repeats,
        quick=quick,
        max_tokens=max_tokens,
        window_s=window,
        hardware=hardware,
        seed=seed,
        workers=workers,
        profiles_folder=str(profiles_folder),
    )
    name = "simulator" if url is None else "url"
    wanted = EngineRequest(name=name, url=url, hardware=hardware, seed=seed)
    options = LocustOptions(
        workers, remote_workers, (web_host, web_port), (bind_host, bind_port), headless=headless, as_json=as_json
    )
    raise typer.Exit(run_locust(request, wanted, runs, options))
