"""The command line: one line per command; the work is in `loadgen.commands`."""

import errno
import io
import sys
from collections.abc import Callable
from inspect import cleandoc

import typer

from loadgen import __version__
from loadgen.commands import (
    analyse,
    answer,
    check,
    compare,
    exporter,
    import_results,
    inspect_metrics,
    inspect_stream,
    load,
    locust,
    lossless,
    plan,
    replay,
    report,
    runs,
    schedule,
    simulate,
    sweep,
    verify,
)
from loadgen.errors import ExitCode, LoadgenError
from loadgen.service import serve

app = typer.Typer(
    name="loadgen",
    help="Where does speculative decoding stop paying off on your model, GPU and prompts, and what to set in vLLM?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
inspect = typer.Typer(help="Look into what a server sent.", no_args_is_help=True, rich_markup_mode=None)


def register(parent: typer.Typer, name: str, command: Callable[..., None]) -> None:
    """Adds a command; the example that closes its docstring closes its `--help` too."""
    text, mark, example = cleandoc(command.__doc__ or "").partition("Example: ")
    if not mark:
        raise ValueError(f"the docstring of {name} ends without an example")
    parent.command(name, help=text.strip(), epilog=f"{mark}{example}")(command)


register(app, "sweep", sweep.command)
register(app, "load", load.command)
register(app, "locust", locust.command)
register(app, "lossless", lossless.command)
register(app, "answer", answer.command)
register(app, "schedule", schedule.command)
register(app, "verify", verify.command)
register(app, "report", report.command)
register(app, "plan", plan.command)
register(app, "compare", compare.command)
register(app, "import", import_results.command)
register(app, "analyse", analyse.command)
register(app, "runs", runs.command)
register(app, "simulate", simulate.command)
register(app, "check", check.command)
register(app, "replay", replay.command)
register(app, "exporter", exporter.command)
register(app, "serve", serve.command)
register(inspect, "stream", inspect_stream.command)
register(inspect, "metrics", inspect_metrics.command)
app.add_typer(inspect, name="inspect")


@app.callback(invoke_without_command=True)
def version(show: bool = typer.Option(False, "--version", help="Print the version and end.")) -> None:
    """Options of loadgen itself."""
    if show:
        typer.echo(__version__)
        raise typer.Exit


_ENVIRONMENT = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG),
    *(errno.EMFILE, errno.ENFILE, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR),
}
"""Faults of the machine or of a path that was given: a person can mend them, so they are told in one sentence."""


_MEASURING = {"sweep", "answer", "verify", "lossless", "analyse"}
"""Commands that may end well and without a verdict."""


def _take_any_character() -> None:
    """A terminal or pipe that is not UTF-8 (LANG=C) gets ? for what it cannot show, and no traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def _say(text: str) -> None:
    """To standard error, where there is one: a script may have closed it."""
    if sys.stderr is not None:
        sys.stderr.write(f"loadgen: {text}\n")


def main() -> None:
    """Runs a command; an error for the user is one sentence and its exit code."""
    _take_any_character()
    try:
        app()
    except SystemExit as ending:
        if ending.code == ExitCode.NO_VERDICT and {*sys.argv[1:2]} & _MEASURING and "--json" not in sys.argv:
            _say("exit code 3: measured, and no verdict yet; make calls that an error, which it is not.")
        raise
    except LoadgenError as error:
        _say(str(error))
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of a pipe (`loadgen runs | head`) went away: nothing to tell.
        if sys.stderr is not None:
            sys.stderr.close()
        sys.exit(ExitCode.ANSWER)
    except OSError as error:
        if error.errno not in _ENVIRONMENT:
            raise
        place = f"{error.filename}: " if error.filename else ""
        _say(f"{place}{error.strerror}; change that, and start again.")
        sys.exit(ExitCode.USAGE)
    except KeyboardInterrupt:
        _say("interrupted")
        sys.exit(ExitCode.INTERRUPTED)
