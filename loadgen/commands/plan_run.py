"""What `loadgen plan` does: read the run's requests, measure rates if asked, plan, write, show."""

from dataclasses import dataclass, replace
from pathlib import Path

from loadgen.analysis.capacity import make_plan
from loadgen.analysis.capacity_certain import is_resolved
from loadgen.analysis.capacity_model import Demand, Hardware, Plan, Slo
from loadgen.analysis.capacity_offer import Wish
from loadgen.analysis.capacity_open import left_out, open_points
from loadgen.commands.conclude import find_findings, print_json
from loadgen.commands.request_points import read_points
from loadgen.errors import ExitCode
from loadgen.report.plan_json import plan_json
from loadgen.report.plan_write import write_plan
from loadgen.store.folder import find_run
from loadgen.store.lock import FolderLock
from loadgen.store.open_cells import open_cells


@dataclass(frozen=True)
class PlanRequest:
    """The command's arguments, read."""

    slos: tuple[Slo, ...]
    demand: Demand | None
    headroom: float
    spares: int
    gpus_per_server: int
    gpu_hour: float | None
    gpu_watts: float | None
    measure: bool
    rates: tuple[float, ...]
    seconds: float


def run_plan(name: str, runs: Path, request: PlanRequest, *, as_json: bool) -> ExitCode:
    """0 with a setting that surely meets the objectives, 1 if surely none does, 3 if that is open."""
    folder = find_run(name, runs)
    hardware = Hardware(request.gpus_per_server, request.headroom, request.spares, request.gpu_hour, request.gpu_watts)
    wish = Wish(request.slos, request.demand, hardware)
    with FolderLock(folder.path):
        points = read_points(folder)
        if request.measure:
            from loadgen.commands.plan_measure import measure_rates

            measure_rates(folder, points, wish, request.rates, request.seconds)
        findings = find_findings(folder)
        opened = open_cells(folder.path)
        plan = make_plan(findings, folder.manifest(), points, open_points(opened), wish)
        plan = replace(plan, notes=(*plan.notes, *left_out(opened)))
        paths = write_plan(folder.path, plan)
    if as_json:
        print_json(plan_json(plan))
    else:
        show(plan, paths["plan.html"])
    return code_of(plan)


def code_of(plan: Plan) -> ExitCode:
    """How the plan ends the command."""
    if not is_resolved(plan):
        return ExitCode.NO_VERDICT
    if any(one.setting is not None for one in plan.advice):
        return ExitCode.ANSWER
    return ExitCode.FINDINGS


def show(plan: Plan, page: Path) -> None:
    """Prints the plan."""
    from rich.console import Console

    from loadgen.report.plan_terminal import print_plan

    print_plan(Console(), plan, page)
