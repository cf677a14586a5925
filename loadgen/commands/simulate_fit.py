"""`loadgen simulate --fit RUN`: a simulated machine that steps as the run's servers did."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import typer

from loadgen.analysis.acceptance import pool, step_time_s
from loadgen.errors import UsageError
from loadgen.profiles.loader import load_profile
from loadgen.simulator.config import DEFAULT_VERSION, engine_config
from loadgen.simulator.fit import FittedHardware, MeasuredStep, fit_hardware
from loadgen.simulator.hardware import DEFAULT_HARDWARE, PRESETS
from loadgen.simulator.hardware_file import hardware_text
from loadgen.store.folder import RunFolder, find_run, write_whole
from loadgen.store.model import CellResult


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
    worst = "" if found.speedup_error is None else f", speed-ups by at most {found.speedup_error:.1%}"
    typer.echo(
        f"{path}: {start} fitted to {found.points} step times; they are off by {found.step_error:.1%} (rms){worst}."
    )
    return path


def fitted(folder: RunFolder, base: str) -> FittedHardware:
    """The run's machine, from a preset; UsageError if its servers counted too few steps."""
    manifest = folder.manifest()
    steps = measured_steps(folder.cells())
    names = {step.profile for step in steps}
    # What a server did beside drafting, such as leaving async scheduling, follows from its version.
    versions = {server.profile: server.version for server in folder.servers() if server.version}
    configs = {
        name: engine_config(load_profile(folder.profile_path(name)), version=versions.get(name, DEFAULT_VERSION))
        for name in names
    }
    try:
        return fit_hardware(PRESETS[base], steps, configs, manifest.against, f"fit-{folder.run_id}")
    except ValueError as error:
        raise UsageError(f"{folder.path} cannot be fitted ({error}); sweep more levels.") from error


def measured_steps(cells: Iterable[CellResult]) -> tuple[MeasuredStep, ...]:
    """One mean step per profile and level, counters of all its cells added first."""
    groups: dict[tuple[str, int], list[CellResult]] = defaultdict(list)
    for cell in cells:
        if cell.window is not None:
            groups[(cell.key.profile, cell.key.level)].append(cell)
    found = []
    for (profile, level), group in sorted(groups.items()):
        delta = pool(cell.window for cell in group)
        seconds = step_time_s(delta)
        prompts = [cell.prompt_tokens.mean for cell in group if cell.prompt_tokens.mean is not None]
        outputs = [cell.output_tokens.mean for cell in group if cell.output_tokens.mean is not None]
        if delta is None or not seconds or not delta.decode_batch or not delta.inter_token_latency or not prompts:
            continue
        count = delta.iteration_tokens.count if delta.iteration_tokens else 0.0
        found.append(
            MeasuredStep(
                profile,
                level,
                batch=delta.decode_batch,
                drafted=(delta.draft_tokens or 0.0) / max(delta.inter_token_latency.count, 1.0),
                prompt_tokens=(delta.prompt_tokens or 0.0) / max(count, 1.0),
                context=sum(prompts) / len(prompts) + (sum(outputs) / len(outputs) / 2 if outputs else 0.0),
                tokens_per_step=delta.tokens_per_step or 1.0,
                step_time_s=seconds,
            )
        )
    return tuple(found)
