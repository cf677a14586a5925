"""A same-quality run's own files: what was asked, the plan, the result and its reports."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from loadgen.commands.lossless_setup import LosslessRequest
from loadgen.errors import UsageError
from loadgen.report.lossless_write import read_result, write_lossless
from loadgen.store.codec import decode, encode
from loadgen.store.folder import RUNS, RunFolder, list_runs, write_whole
from loadgen.sweep.lossless_plan import LosslessPlan

T = TypeVar("T")
INSIDE, REQUEST, PLAN, RESULT = "lossless", "request.json", "plan.json", "result.json"


@dataclass(frozen=True)
class StoredRequest:
    """request.json: what was asked, and on which engine it runs. Its presence makes a folder a same-quality run."""

    created_at: str
    loadgen_version: str
    argv: tuple[str, ...]
    engine_reason: str
    simulated: bool
    request: LosslessRequest


def inside(folder: RunFolder) -> Path:
    """The run folder's `lossless/`, there."""
    path = folder.path / INSIDE
    path.mkdir(exist_ok=True)
    return path


def keep(folder: RunFolder, name: str, fact: StoredRequest | LosslessPlan) -> None:
    """Writes request.json or plan.json."""
    write_whole(inside(folder) / name, msgspec.json.format(encode(fact)) + b"\n")


def stored_request(folder: RunFolder) -> StoredRequest:
    """request.json; UsageError if it cannot be read."""
    return _read(folder.path / INSIDE / REQUEST, StoredRequest)


def stored_plan(folder: RunFolder) -> LosslessPlan | None:
    """plan.json; None before the first server was up."""
    path = folder.path / INSIDE / PLAN
    return _read(path, LosslessPlan) if path.is_file() else None


def is_lossless(folder: RunFolder) -> bool:
    """True for a same-quality run."""
    return (folder.path / INSIDE / REQUEST).is_file()


def lossless_runs(runs: Path = RUNS) -> list[RunFolder]:
    """The same-quality runs, oldest first: their names begin with the time."""
    paths = sorted(runs.iterdir()) if runs.is_dir() else []
    return [folder for folder in map(RunFolder, paths) if is_lossless(folder)]


def find_lossless(name: str, runs: Path = RUNS) -> RunFolder:
    """The same-quality run of that name: a path, a folder's name under `runs`, or `latest`; UsageError if none."""
    there = lossless_runs(runs)
    if name == "latest" and there:
        return there[-1]
    for path in (Path(name), runs / name):
        if is_lossless(RunFolder(path)):
            return RunFolder(path)
    known = ", ".join(run.run_id for run in there[-3:]) or "none yet"
    raise UsageError(f"{name} is no run of loadgen lossless; give its folder, its name, or latest (newest: {known}).")


def lossless_meant(name: str, runs: Path = RUNS) -> RunFolder | None:
    """The same-quality run that `name` means to a command for runs of all kinds; None if it means another kind."""
    if name != "latest":
        found = (RunFolder(path) for path in (Path(name), runs / name))
        return next((folder for folder in found if is_lossless(folder)), None)
    there, sweeps = lossless_runs(runs), list_runs(runs)
    newest = there[-1] if there else None
    return newest if newest and (not sweeps or newest.run_id > sweeps[-1].run_id) else None


def write_again(folder: RunFolder) -> Mapping[str, Path]:
    """The reports' paths by name, written from result.json; UsageError if the test is not through."""
    path = folder.path / INSIDE / RESULT
    if not path.is_file():
        raise UsageError(f"{folder.path} has no result yet; `{resume_words(folder)}` goes on with it.")
    finding, about = read_result(path)
    return write_lossless(folder.path, finding, about)


def row_of(folder: RunFolder) -> dict[str, object]:
    """The run as one of a list: the keys of a sweep's row, and `quality`."""
    stored = stored_request(folder)
    sweep, result = stored.request.sweep, folder.path / INSIDE / RESULT
    quality = read_result(result)[0].quality.value if result.is_file() else "not through: --resume goes on"
    return {
        "run": folder.run_id,
        "engine": stored.request.engine.name,
        "simulated": stored.simulated,
        "profiles": (sweep.against, sweep.profile),
        "workloads": (sweep.workload,),
        "levels": (),
        "cells": 0,
        "cells_planned": 0,
        "quality": f"{sweep.profile} against {sweep.against} on {sweep.workload}: {quality}",
    }


def resume_words(folder: RunFolder) -> str:
    """The command that goes on."""
    where = folder.run_id if folder.path.parent == RUNS else shlex.quote(str(folder.path))
    return f"loadgen lossless --resume {where}"


def _read(path: Path, kind: type[T]) -> T:
    try:
        return decode(path.read_bytes(), kind)
    except ValueError as error:
        raise UsageError(
            f"{path} cannot be read ({error}): damaged, or of another version; start a new test."
        ) from error
