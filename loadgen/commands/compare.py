"""`loadgen compare`: what changed from one run to another."""

from typing import TYPE_CHECKING, Annotated

import typer

from loadgen.commands.given import Runs
from loadgen.store.folder import RUNS

if TYPE_CHECKING:
    from loadgen.analysis.compare import Difference


def command(
    before: Annotated[str, typer.Argument(help="The first run: a folder, its name, or latest.")],
    after: Annotated[str, typer.Argument(help="The second run.")],
    allow: Annotated[list[str] | None, typer.Option(help="A field that may differ besides (repeatable).")] = None,
    runs: Runs = RUNS,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Compare two runs that differ in one thing, and say what changed, with intervals.

    Runs that differ in more than one thing are refused, for nobody could say which of them made the change; --allow
    names what may differ besides. Exit code 1 if the second run is surely slower somewhere.

    Example: loadgen compare 2026-11-29T16-20-00Z-ngram latest --allow seed
    """
    from rich.console import Console

    from loadgen.analysis.compare import compare
    from loadgen.commands.conclude import print_json
    from loadgen.commands.several import run_facts
    from loadgen.errors import ExitCode, UsageError
    from loadgen.report.compare_text import comparison_data, print_comparison
    from loadgen.report.summary import dumps
    from loadgen.store.folder import find_run

    first, second = (run_facts(find_run(name, runs)) for name in (before, after))
    if first.manifest.run_id == second.manifest.run_id:
        raise UsageError(f"{before} and {after} are the same run; give two.")
    found = compare(first, second)
    _require_one(found.differences, tuple(allow or ()))
    if as_json:
        print_json(dumps(comparison_data(found)))
    else:
        print_comparison(Console(), found)
    if not found.changes:
        raise typer.Exit(ExitCode.NO_VERDICT)
    raise typer.Exit(ExitCode.FINDINGS if found.surely_worse else ExitCode.ANSWER)


def _require_one(differences: "tuple[Difference, ...]", allow: tuple[str, ...]) -> None:
    """UsageError if more than one difference is left, or an allowed field is unknown."""
    from loadgen.analysis.compare import FIELDS
    from loadgen.errors import UsageError

    unknown = [name for name in allow if name not in FIELDS]
    if unknown:
        raise UsageError(f"--allow {unknown[0]} is no field; known are {', '.join(FIELDS)}.")
    left = [difference for difference in differences if difference.field not in allow]
    if len(left) > 1:
        parts = "; ".join(f"{d.field} ({d.before} against {d.after})" for d in left)
        names = " ".join(f"--allow {d.field}" for d in left[1:])
        raise UsageError(
            f"The runs differ in {len(left)} things, so that no change could be put down to one of them: {parts}. "
            f"Compare runs that differ in one, or say what may differ besides: {names}."
        )
