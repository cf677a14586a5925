"""Which command goes on with what was interrupted."""

import shlex
from typing import TYPE_CHECKING

from loadgen.errors import LoadgenError, NoVerdictError, UsageError
from loadgen.store.folder import RUNS, RunFolder

if TYPE_CHECKING:
    import typer


def resume_words(folder: RunFolder, command: str = "sweep", more: str = "") -> str:
    """The command that goes on, with `more` options, also where `--runs` put the run somewhere else."""
    more = f" {more}" if more else ""
    if folder.path.parent == RUNS:
        return f"make {command} ARGS='--resume {folder.run_id}{more}'"
    return f"loadgen {command} --resume {shlex.quote(str(folder.path))}{more}"


def with_resume(error: LoadgenError, folder: RunFolder, command: str) -> LoadgenError:
    """The error with the command that goes on; as it is where more measuring of the same plan would not help."""
    if isinstance(error, NoVerdictError):
        return error
    return type(error)(f"{error} What was measured stands: {resume_words(folder, command)} goes on.")


def refuse_other_options(context: "typer.Context", *taken: str) -> None:
    """UsageError for an option on the command line beside `--resume` that is not `taken` (by parameter name)."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is None or source.name != "COMMANDLINE" or parameter.name in {"resume", "runs", "as_json", *taken}:
            continue
        raise UsageError(
            f"--resume goes on with what was asked for then, and takes no {parameter.opts[0]}; leave it out."
        )
