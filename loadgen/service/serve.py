"""`loadgen serve`: the service."""

from pathlib import Path
from typing import Annotated

import typer

from loadgen.store.folder import RUNS


def command(
    host: Annotated[str, typer.Option(help="The address to listen on; others than this machine's need a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free port.")] = 8088,
    runs: Annotated[Path, typer.Option(help="The folder of the runs.")] = RUNS,
    profiles_folder: Annotated[Path | None, typer.Option("--profiles", help="Folder of profiles.")] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name under which the service is asked (repeatable).")
    ] = None,
    server: Annotated[
        list[str] | None, typer.Option(help="A running server that sweeps may load, by URL (repeatable).")
    ] = None,
    open_metrics: Annotated[bool, typer.Option("--open-metrics", help="/metrics without the token.")] = False,
) -> None:
    """Serve a page and an API that start, show, cancel and resume sweeps; a token is taken from LOADGEN_TOKEN.

    Example: loadgen serve --port 8088 --runs runs
    """
    try:
        import fastapi  # noqa: F401  # asked for here, so that its lack is one sentence
        import uvicorn  # noqa: F401  # the same
    except ImportError:
        from loadgen.errors import UsageError

        raise UsageError("`loadgen serve` needs FastAPI and uvicorn: pip install 'loadgen[service]'.") from None
    import os

    from loadgen.engines.address import clean_url
    from loadgen.service.server import run
    from loadgen.service.settings import Settings, check_token

    settings = Settings(
        runs=runs,
        token=check_token(host, os.environ.get("LOADGEN_TOKEN")),
        hosts=frozenset(name.lower() for name in allow_host or ()),
        servers=tuple(clean_url(url) for url in server or ()),
        profiles=profiles_folder,
        open_metrics=open_metrics,
    )
    run(settings, host, port, typer.echo)
