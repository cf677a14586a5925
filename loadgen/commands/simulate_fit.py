"""`loadgen simulate --fit RUN`: a simulated machine that steps as the run's servers did."""

import dataclasses
from pathlib import Path

import typer

from loadgen.analysis.checks import check_cell, contexts_of
from loadgen.errors import UsageError
from loadgen.profiles.loader import load_profile
from loadgen.simulator.config import DEFAULT_VERSION, EngineConfig, engine_config
from loadgen.simulator.fit import FittedHardware, fit_hardware
from loadgen.simulator.hardware import DEFAULT_HARDWARE, PRESETS, Hardware
from loadgen.simulator.hardware_file import hardware_text
from loadgen.simulator.measured import api_cost, measured_steps
from loadgen.store.folder import RunFolder, find_run, write_whole
from loadgen.store.model import CellResult

STEPS_ARE_RIGHT = frozenset({"queueing", "reached-concurrency", "tokens-estimated", "prompts-differ", "prefix-cache"})
"""Checks that void a cell's answer but not its steps: their batch and prompt tokens are counted as they were."""


def fit_run(name: str, base: str, out: Path | None, runs: Path) -> Path:
    """The written file; prints what was fitted and how far it is off."""
    folder = find_run(name, runs)
    if base and base not in PRESETS:
        raise UsageError(f"--hardware {base} is no preset to start a fit from; choose one of {', '.join(PRESETS)}.")
    start = base or str(folder.manifest().hardware.get("preset") or "")
    start = start if start in PRESETS else DEFAULT_HARDWARE
    found = fitted(folder, start)
    path = out or folder.path / "hardware.json"
    write_whole(path, hardware_text(found.hardware, start).encode())
    typer.echo(f"{path}: {start} {found.hardware.source}.")
    for line in (*_level_lines(found), *_closed_loop(folder, found.hardware)):
        typer.echo(line)
    return path


def _closed_loop(folder: RunFolder, machine: Hardware) -> list[str]:
    """The run's curve beside the machine's, where prompts decide nothing but by their lengths."""
    from loadgen.commands.simulate_against import curve, table

    try:
        return ["In a closed loop of the run's lengths:", *table(curve(folder, machine)).splitlines()]
    except UsageError as error:
        return [str(error)]


def fitted(folder: RunFolder, base: str) -> FittedHardware:
    """The run's machine, from a preset; UsageError if its servers counted too few steps."""
    cells = fit_cells(folder)
    steps = measured_steps(cells)
    try:
        found = fit_hardware(
            PRESETS[base],
            steps,
            run_configs(folder),
            folder.manifest().against,
            f"fit-{folder.run_id}",
            api_cost(cells),
        )
    except ValueError as error:
        raise UsageError(f"{folder.path} cannot be fitted ({error}); sweep more levels.") from error
    # A simulated machine takes requests in as its preset says; a real server's async scheduling plans a step ahead.
    ahead = found.hardware.steps_ahead if folder.manifest().simulated else 1
    machine = dataclasses.replace(found.hardware, source=source_text(found, folder), steps_ahead=ahead)
    return dataclasses.replace(found, hardware=machine)


def fit_cells(folder: RunFolder) -> tuple[CellResult, ...]:
    """The cells whose steps are the engine's own: none in which it waited for its API server or for the client."""
    cells = tuple(folder.cells())
    contexts = contexts_of(folder.manifest(), cells)
    return tuple(
        cell
        for cell in cells
        if all(
            not check.voids or check.name in STEPS_ARE_RIGHT for check in check_cell(cell, contexts[cell.key.profile])
        )
    )


def run_configs(folder: RunFolder) -> dict[str, EngineConfig]:
    """The engine configuration of each profile, by the version that its server ran."""
    # What a server did beside drafting, such as leaving async scheduling, follows from its version.
    versions = {server.profile: server.version for server in folder.servers() if server.version}
    return {
        name: engine_config(load_profile(folder.profile_path(name)), version=versions.get(name, DEFAULT_VERSION))
        for name in folder.manifest().profiles
    }


def source_text(found: FittedHardware, folder: RunFolder) -> str:
    """From what the machine was fitted, and how far it is off: the preset's `source`."""
    levels = ", ".join(map(str, found.levels))
    text = (
        f"fitted to {found.points} step times of {folder.run_id} (levels {levels}); step times are off by "
        f"{found.step_error:.1%} (rms)"
    )
    if found.speedup_error is not None:
        text += f", speed-ups by at most {found.speedup_error:.1%}"
    if found.held_out_error is not None:
        text += f", and by {found.held_out_error:.1%} at a level that was left out"
    return text


def _level_lines(found: FittedHardware) -> list[str]:
    lines = [f"The run tells {', '.join(found.told) or 'none of its fields'}; the rest is the preset's."]
    for one in found.errors:
        held_out = "" if one.held_out is None else f", {one.held_out:+.1%} if it is left out"
        lines.append(f"{one.profile} at {one.level}: speed-up off by {one.fitted:+.1%}{held_out}")
    return lines
