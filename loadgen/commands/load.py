"""`loadgen load`: one cell against a running server."""

from pathlib import Path
from typing import Annotated

import typer

from loadgen.commands.given import InputLengths, OutputLengths, Workers


def command(
    url: Annotated[str, typer.Option(help="The server's base URL, without /v1.")],
    concurrency: Annotated[
        int, typer.Option(min=1, max=100_000, help="Requests in flight; with --rate the most of them.")
    ] = 32,
    requests: Annotated[int, typer.Option(min=1, max=1_000_000, help="Hard bound: no more requests are sent.")] = 256,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            min=1, max=1_000_000, help="Cap of each output; else 256, or what a trace or --output-lengths say."
        ),
    ] = None,
    model: Annotated[str, typer.Option(help="The served model's name; else the server's first one.")] = "",
    workload: Annotated[str, typer.Option(help="A workload's name, or a file of prompts.")] = "code-edit",
    input_tokens: Annotated[int | None, typer.Option(min=1, max=1_000_000, help="Wanted prompt length.")] = None,
    input_lengths: InputLengths = None,
    output_lengths: OutputLengths = None,
    window: Annotated[
        float | None, typer.Option(min=0.1, help="Seconds to measure; else until the prompts end.")
    ] = None,
    rate: Annotated[float | None, typer.Option(min=0.001, help="Open loop: requests a second.")] = None,
    stages: Annotated[str | None, typer.Option(help="Open loop: SECONDSxRATE,… as 30x2,30x8.")] = None,
    trace: Annotated[
        Path | None, typer.Option(help="Open loop: a trace's arrivals and lengths (JSONL or CSV).")
    ] = None,
    trace_speed: Annotated[float, typer.Option(min=0.001, help="2 replays the trace in half its time.")] = 1.0,
    arrival: Annotated[str, typer.Option(help="Open loop: poisson or constant.")] = "poisson",
    temperature: Annotated[float, typer.Option(min=0.0, max=2.0, help="Sampling temperature.")] = 0.0,
    ignore_eos: Annotated[bool, typer.Option("--ignore-eos", help="Force every output to --max-tokens.")] = False,
    workers: Workers = 1,
    seed: Annotated[
        int, typer.Option(min=0, max=(1 << 63) - 1, help="Prompts, sampling and arrivals follow from it.")
    ] = 1,
    timeout: Annotated[float | None, typer.Option(min=0.1, help="Seconds a whole request may take.")] = None,
    ca_file: Annotated[str | None, typer.Option(help="PEM file of the CA that signed the server.")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Do not verify the server's certificate.")] = False,
    use_proxy: Annotated[bool, typer.Option("--use-proxy", help="Use the environment's proxies.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Load a running server and print its latency, throughput and the server's own counters.

    Exit code 3 if every request failed, 130 after Ctrl-C (what was measured is printed).

    Example: loadgen load --url http://127.0.0.1:8000 --concurrency 32 --requests 256 --max-tokens 256
    """
    from loadgen.commands.load_run import LoadRequest, run_load

    request = LoadRequest(
        url=url,
        model=model,
        workload=workload,
        concurrency=concurrency,
        requests=requests,
        max_tokens=max_tokens,
        input_tokens=input_tokens,
        input_lengths=input_lengths,
        output_lengths=output_lengths,
        workers=workers,
        window_s=window,
        rate_per_s=rate,
        arrival=arrival,
        stages=stages,
        trace=trace,
        trace_speed=trace_speed,
        temperature=temperature,
        ignore_eos=ignore_eos,
        seed=seed,
        timeout_s=timeout,
        ca_file=ca_file,
        verify_tls=not insecure,
        use_proxy=use_proxy,
    )
    raise typer.Exit(run_load(request, as_json=as_json))
