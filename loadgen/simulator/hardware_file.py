"""Simulated machines as files: what `loadgen simulate --fit` writes and `--hardware FILE` reads."""

import dataclasses
import json
import math
from pathlib import Path

from loadgen.errors import UsageError
from loadgen.simulator.hardware import PRESETS, Hardware

LONGEST_S = 60.0
"""Of any part of a step."""
MOST = 1e15
"""Of parameters and bytes."""
_LIMITS = {
    "parameters": (1e3, MOST),
    "weight_bytes": (1e3, MOST),
    "bandwidth": (1e6, 1e18),
    "flops": (1e6, 1e21),
    "kv_bytes_per_token": (1.0, 1e9),
    "memory_bytes": (1e6, MOST),
    "verify_attention": (0.0, 100.0),
    "knee_sharpness": (1.0, 64.0),
    "steps_ahead": (0.0, 1.0),
}
_NAMES = {field.name for field in dataclasses.fields(Hardware)}


def find_hardware(name: str) -> Hardware:
    """The preset of that name, or the machine in the JSON file of that path; UsageError in one sentence."""
    if name in PRESETS:
        return PRESETS[name]
    path = Path(name)
    if path.suffix != ".json":
        raise UsageError(f"There is no hardware {name!r}; choose one of {', '.join(PRESETS)}, or give a .json file.")
    return read_hardware(path)


def read_hardware(path: Path) -> Hardware:
    """The machine of a file; fields that it leaves out are those of the preset that its `base` names."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path} cannot be read as JSON ({error}); `loadgen simulate --fit RUN` writes one."
        ) from error
    if not isinstance(data, dict):
        raise UsageError(f"{path} is no JSON object; `loadgen simulate --fit RUN` writes one.")
    base = data.pop("base", None)
    if base not in PRESETS:
        raise UsageError(f"{path} has base {base!r}; write one of {', '.join(PRESETS)}.")
    unknown = sorted(set(data) - _NAMES)
    if unknown:
        raise UsageError(
            f"{path} has the unknown field {unknown[0]!r}; the known ones are {', '.join(sorted(_NAMES))}."
        )
    words = {"name", "description", "source"}
    for key, value in data.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
        if not (isinstance(value, str) if key in words else number):
            raise UsageError(
                f"{path} has {key}: {value!r}; write {'a text' if key in words else 'a number from 0 up'}."
            )
    for key, value in data.items():
        low, high = (0.0, math.inf) if key in words else _limits(key)
        if key not in words and not low <= value <= high:
            raise UsageError(f"{path} has {key}: {value!r}; no machine is like that: from {low:g} to {high:g}.")
    return dataclasses.replace(PRESETS[base], **data)


def _limits(key: str) -> tuple[float, float]:
    """Between which a step takes some time, and ends."""
    if key in _LIMITS:
        return _LIMITS[key]
    return 0.0, LONGEST_S if key.endswith("_s") else MOST


def hardware_text(hardware: Hardware, base: str) -> str:
    """The file's content: the base's name, and each field that differs from it."""
    known = dataclasses.asdict(PRESETS[base])
    own = {key: value for key, value in dataclasses.asdict(hardware).items() if value != known[key]}
    return json.dumps({"base": base, **own}, indent=2) + "\n"
