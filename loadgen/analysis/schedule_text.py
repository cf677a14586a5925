"""A schedule as vLLM takes it: in a config file, and on the command line."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from loadgen.profiles.model import BatchSchedule

FIELD = "num_speculative_tokens_per_batch_size"
OPTION = "speculative-config"


def speculative_config(raw: Mapping[str, Any], schedule: BatchSchedule | None, k: int) -> dict[str, Any]:
    """The `speculative-config` of a profile with this K and schedule (None: static)."""
    kept = {name: value for name, value in raw.items() if name != FIELD}
    kept["num_speculative_tokens"] = k
    if schedule is not None:
        kept[FIELD] = [list(entry) for entry in schedule]
    return kept


def as_yaml(config: Mapping[str, Any]) -> str:
    """The lines of a vLLM config file; the schedule stands on one line, as it is written by hand."""
    lines = [f"{OPTION}:"]
    lines += [f"  {name}: {json.dumps(value)}" for name, value in config.items()]
    return "\n".join(lines) + "\n"


def as_option(config: Mapping[str, Any]) -> str:
    """`--speculative-config '{...}'`, quoted for a shell."""
    return f"--{OPTION} {shlex.quote(json.dumps(dict(config), separators=(', ', ': ')))}"
