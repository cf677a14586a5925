"""`loadgen exporter`: the runs as Prometheus metrics."""

from typing import Annotated

import typer

from loadgen.commands.given import Runs
from loadgen.store.folder import RUNS


def command(
    runs: Runs = RUNS,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 9108,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
) -> None:
    """Show the runs to Prometheus: speed-ups with their bands, break-evens, the schedule, and a live sweep's progress.

    Example: loadgen exporter --runs runs --port 9108
    """
    import threading

    from prometheus_client import CollectorRegistry, start_http_server

    from loadgen.commands.exporter_runs import RunsCollector
    from loadgen.errors import UsageError

    registry = CollectorRegistry(auto_describe=False)
    registry.register(RunsCollector(runs))
    try:
        server, _ = start_http_server(port, addr=host, registry=registry)
    except (OSError, UnicodeError) as error:
        cause = getattr(error, "strerror", None) or "no host name"
        raise UsageError(f"{host}:{port} cannot be listened on ({cause}); choose another --host or --port.") from error
    typer.echo(f"http://{host}:{server.server_port}/metrics shows {runs}/; Ctrl-C ends it.")
    threading.Event().wait()
