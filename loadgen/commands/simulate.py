"""`loadgen simulate`: a simulated vLLM server, or the truth about it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from loadgen.errors import UsageError
from loadgen.store.folder import RUNS


def command(
    config: Annotated[Path | None, typer.Option(help="A vLLM config file, such as server_profiles/ngram.yaml.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free port; the log tells which.")] = 8000,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    hardware: Annotated[
        str,
        typer.Option(
            help="The simulated machine: a preset (an unknown name lists them) or a .json file that --fit wrote."
        ),
    ] = "",
    model: Annotated[str | None, typer.Option(help="The model's name, as clients must send it.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all noise.")] = 0,
    start: Annotated[int, typer.Option(help="Number of this server start: each has its own luck.")] = 0,
    noise: Annotated[str, typer.Option(help="off, on, rough (a bad day) or flips (near ties turn).")] = "on",
    max_num_seqs: Annotated[int | None, typer.Option(min=1, help="As vLLM's.")] = None,
    max_model_len: Annotated[int | None, typer.Option(min=2, help="As vLLM's.")] = None,
    vllm_version: Annotated[
        str, typer.Option(help="Behave as this vLLM, from 0.10 on: its overrides, runner and known fields.")
    ] = "0.32.0",
    fault: Annotated[
        str | None, typer.Option(help="Test aid: fail on purpose, NAME or NAME:NUMBER; an unknown name lists them.")
    ] = None,
    bug: Annotated[
        str | None,
        typer.Option(help="Test aid: wrong tokens from drafts, NAME or NAME:NUMBER; unknown names list all."),
    ] = None,
    truth: Annotated[
        bool, typer.Option("--truth", help="Do not serve; print what a perfect sweep would find.")
    ] = False,
    workload: Annotated[str, typer.Option(help="With --truth: the workloads, with commas.")] = "code-edit",
    levels: Annotated[str, typer.Option(help="With --truth: the concurrency levels.")] = "1,2,4,8,16,32",
    against: Annotated[str, typer.Option(help="With --truth: the profile to compare with.")] = "baseline",
    fit: Annotated[
        str | None, typer.Option(help="Do not serve; write the machine that a run was measured on: a run, or latest.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="With --fit: the file; RUN/hardware.json by default.")] = None,
    runs: Annotated[Path, typer.Option(help="With --fit: the folder of the runs.")] = RUNS,
    as_json: Annotated[bool, typer.Option("--json", help="With --truth: JSON instead of a table.")] = False,
) -> None:
    """Serve vLLM's API from a simulated engine, with the config file, streams, metrics and errors of vLLM 0.32
    (--vllm-version: the overrides of another).

    Example: loadgen simulate --config server_profiles/ngram.yaml --port 8000
    """
    if fit is not None:
        from loadgen.commands.simulate_fit import fit_run

        fit_run(fit, hardware, out, runs)
        return
    if config is None:
        raise UsageError("--config is missing; give a vLLM config file, such as server_profiles/ngram.yaml.")
    from loadgen.profiles.loader import load_profile
    from loadgen.simulator.hardware import DEFAULT_HARDWARE
    from loadgen.simulator.launch import LaunchOptions, launch, whole_version

    profile = load_profile(config)
    options = LaunchOptions(
        hardware or DEFAULT_HARDWARE,
        model,
        seed,
        start,
        noise,
        max_num_seqs,
        max_model_len,
        whole_version(vllm_version),
        force_v1=os.environ.get("VLLM_USE_V2_MODEL_RUNNER") == "0",
        bug=bug,
    )
    if truth:
        from loadgen.commands.simulate_truth import TruthRequest, print_truth

        print_truth(TruthRequest(profile, options, workload, levels, against, as_json, fault))
        return
    from loadgen.simulator.faults import Fault
    from loadgen.simulator.serve import ServeOptions, serve

    spoilt = Fault.parse(fault) if fault else None
    parts = launch(profile, options)
    _log_to_stdout()
    arguments = {**_as_arguments(profile.settings), "model_tag": parts.spec.root, "seed": seed, "start": start}
    if not serve(parts, ServeOptions(host, port, spoilt, arguments)):
        raise typer.Exit(1)


def _as_arguments(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as vLLM's log names them: underscores, and `no-x` as `x: False`."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        negated = name.startswith("no-")
        found[name.removeprefix("no-").replace("-", "_")] = (not value) if negated else value
    return found


def _log_to_stdout() -> None:
    import logging
    import sys

    logging.basicConfig(
        stream=sys.stdout,
        level=logging.INFO,
        format=f"(APIServer pid={os.getpid()}) %(levelname)s %(asctime)s [%(filename)s:%(lineno)d] %(message)s",
        datefmt="%m-%d %H:%M:%S",
    )
