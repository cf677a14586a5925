"""`loadgen check`: the preflight of the stack, and the lint of a stack's files."""

from pathlib import Path
from typing import Annotated

import typer


def command(
    compose: Annotated[list[Path] | None, typer.Option(help="A Compose file of your own (may be repeated).")] = None,
    prometheus: Annotated[Path | None, typer.Option(help="A prometheus.yml; its rule files are read too.")] = None,
    dashboard: Annotated[list[Path] | None, typer.Option(help="A Grafana dashboard (may be repeated).")] = None,
    provisioning: Annotated[
        list[Path] | None, typer.Option(help="Grafana's data sources, a file or folder; else looked for nearby.")
    ] = None,
    profile: Annotated[str | None, typer.Option(help="Also check that this profile fits the stack's model.")] = None,
    engine: Annotated[str, typer.Option(help="docker: a missing Docker is an error. Else a warning.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Check this machine and our stack, or only the files that are given. One finding a line, with its cure.

    Exit code 1 if any finding is an error; warnings leave it at 0.

    Example: loadgen check --compose docker-compose.yml --prometheus prometheus.yml --dashboard board.json
    """
    import json
    from dataclasses import asdict, replace

    from loadgen.commands.check_files import Files, home_folder, lint_files, own_files, provisioning_near
    from loadgen.commands.check_machine import Machine, check_machine
    from loadgen.commands.lint_finding import Finding, Note, errors
    from loadgen.errors import ExitCode, UsageError

    if engine not in ("auto", "docker", "process", "url", "simulator"):
        raise UsageError(f"Unknown engine {engine!r}; known are auto, docker, process, url, simulator.")
    home = home_folder()
    given = Files(tuple(compose or ()), prometheus, tuple(dashboard or ()), tuple(provisioning or ()))
    answers: list[Finding | Note] = []
    if given == Files():
        answers += check_machine(Machine(home, engine == "docker", profile))
        given = own_files(home)
    elif not given.provisioning:
        given = replace(given, provisioning=provisioning_near(given))
    findings = [item for item in answers if isinstance(item, Finding)] + lint_files(given)
    notes = [item for item in answers if isinstance(item, Note)]
    faults = errors(findings)
    if as_json:
        whole = {"findings": [asdict(f) for f in findings], "notes": [asdict(n) for n in notes]}
        typer.echo(json.dumps(whole, ensure_ascii=False, indent=1))
    else:
        for note in notes:
            typer.echo(f"ok      {note.where}: {note.text}.")
        for finding in findings:
            typer.echo(finding.line)
        typer.echo(f"{len(faults)} error(s), {len(findings) - len(faults)} warning(s).")
    raise typer.Exit(ExitCode.FINDINGS if faults else ExitCode.ANSWER)
