"""`loadgen simulate --truth`: what a perfect sweep of the simulated servers would find."""

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from loadgen.commands import options
from loadgen.errors import UsageError
from loadgen.profiles.model import ServerProfile

if TYPE_CHECKING:
    from loadgen.simulator.launch import LaunchOptions
    from loadgen.simulator.truth import Truth

_STATUS = {
    "pays_throughout": "pays at every level",
    "never_pays": "never pays at these levels",
    "no_difference": "makes no difference at these levels",
}


@dataclass(frozen=True)
class TruthRequest:
    """What is asked for."""

    profile: ServerProfile
    launch: "LaunchOptions"
    workloads: str
    levels: str
    against: str
    as_json: bool
    fault: str | None = None


def print_truth(request: TruthRequest) -> None:
    """Prints one table for each workload, or all of them as JSON; UsageError for names that are not known."""
    from loadgen.profiles.loader import load_profile
    from loadgen.simulator.hardware_file import find_hardware
    from loadgen.simulator.launch import launch, with_options
    from loadgen.simulator.truth import truth
    from loadgen.workloads.registry import get_workload

    hardware = find_hardware(request.launch.hardware)
    levels = options.levels(request.levels)
    workloads = [get_workload(name) for name in options.names(request.workloads, "--workload")]
    base = load_profile(request.against)
    _require_unspoilt(request)
    for each in (request.profile, base):
        launch(each, request.launch)  # what no server would start with is refused alike
    profile, against = (with_options(each, request.launch) for each in (request.profile, base))
    seed, version = request.launch.seed, request.launch.version
    try:
        found = [truth(profile, hardware, one, levels, seed, against, version=version) for one in workloads]
    except ValueError as error:
        raise UsageError(f"There is no truth with these settings: {error}; change --max-model-len.") from error
    if request.as_json:
        import json

        typer.echo(json.dumps({"simulated": True, "truths": [as_data(one) for one in found]}, indent=1))
        return
    for one in found:
        typer.echo("\n".join(table(one)) + "\n")
    if hardware.source:
        typer.echo(f"{hardware.name} was {hardware.source}.")


def _require_unspoilt(request: TruthRequest) -> None:
    """UsageError for --fault and --bug: the truth is that of sound servers."""
    from loadgen.simulator.bugs import Bug
    from loadgen.simulator.faults import Fault

    for option, given in (("--fault", request.fault), ("--bug", request.launch.bug)):
        if given:
            Fault.parse(given) if option == "--fault" else Bug.parse(given)
            raise UsageError(f"{option} spoils a server and --truth starts none; leave one of them out.")


def as_data(found: "Truth") -> dict[str, Any]:
    """The truth as plain data, keys as in the dataclass."""
    return dataclasses.asdict(found)


def table(found: "Truth") -> list[str]:
    """The lines of one table: head, one line a level, the sentence."""
    head = ("requests", "baseline tok/s", "tok/s", "speed-up", "± rel.", "TPOT", "batch", "tok/step", "accepted")
    rows = [
        (
            str(level.concurrency),
            f"{level.baseline_tokens_per_s:.1f}",
            f"{level.tokens_per_s:.1f}",
            f"{level.speedup:.3f}",
            f"{level.speedup_error:.2%}",
            f"{level.tpot_speedup:.3f}",
            f"{level.batch:.1f}",
            _number(level.tokens_per_step),
            _number(level.acceptance_rate),
        )
        for level in found.levels
    ]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    return [
        f"SIMULATED truth: {found.profile} against {found.against} on {found.workload}, {found.hardware}",
        *("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *rows)),
        _sentence(found),
    ]


def _sentence(found: "Truth") -> str:
    if not found.crossings:
        return f"Speculation {_STATUS[found.status]}."
    turns = [f"{turn.direction} between {turn.level_below} and {turn.level_above}" for turn in found.crossings]
    return f"Speculation turns {', '.join(turns)} concurrent requests."


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
