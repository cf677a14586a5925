"""`loadgen inspect metrics`: what two saved `/metrics` bodies say about the time between them."""

from pathlib import Path
from typing import Annotated

import typer

from loadgen.errors import ExitCode, UsageError


def command(
    before: Annotated[Path, typer.Argument(help="A saved /metrics body (plain or .gz) from the window's start.")],
    after: Annotated[Path, typer.Argument(help="One from its end.")],
    seconds: Annotated[float | None, typer.Option(help="Seconds between the two: needed for rates.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Print every figure that vLLM's counters give for a window, each with its formula.

    Exit code 1 if the counters were reset in between.

    Example: loadgen inspect metrics before.txt after.txt --seconds 30
    """
    import json

    from loadgen.metrics import figures
    from loadgen.metrics.delta import delta
    from loadgen.metrics.parse import parse

    if seconds is not None and seconds <= 0:
        raise UsageError(f"--seconds is {seconds:g}; give the seconds between the two scrapes, above 0")
    found = delta(parse(_read(before)), parse(_read(after)), seconds or 0.0)
    if as_json:
        typer.echo(json.dumps(figures.as_json(found), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        typer.echo("\n".join(figures.describe(found)))
    if found.reset_detected:
        raise typer.Exit(ExitCode.FINDINGS)


def _read(path: Path) -> bytes:
    """The file's bytes, unpacked if it is gzip; UsageError if it cannot be read."""
    import gzip
    import zlib

    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path} cannot be read ({error}); give a saved /metrics body") from error
