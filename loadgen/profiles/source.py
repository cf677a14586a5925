"""YAML bytes to plain data, with the line of each key, so that an error can point at it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from loadgen.errors import UsageError

MAX_ALIASES = 20
"""More than a person writes; a dozen aliases of aliases can stand for more values than memory holds."""


@dataclass(frozen=True)
class Source:
    """A config file as data, and where each key stands."""

    label: str
    """The file's path as the user gave it."""
    data: dict[str, Any]
    lines: Mapping[tuple[str, ...], int]
    """Path of keys (one or two deep) → line, counted from 1."""

    def at(self, *keys: str) -> str:
        """`file:line` of a key; `file` if the key is not in the text."""
        line = self.lines.get(keys) or self.lines.get(keys[:1])
        return f"{self.label}:{line}" if line else self.label


def read_source(text: str, label: str) -> Source:
    """The file's top-level mapping; an empty file is an empty mapping. UsageError with file and line if it is no YAML,
    no mapping, or names a key twice.
    """
    try:
        if sum(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)) > MAX_ALIASES:
            raise UsageError(f"{label}: more than {MAX_ALIASES} aliases (*name); write the values out.")
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
        json.dumps(data, default=str, skipkeys=True)  # ValueError for an anchor inside itself, which no file can say
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{label}:{mark.line + 1}" if mark else label
        raise UsageError(f"{where}: this is no valid YAML ({error.problem}); correct the line.") from None
    except yaml.YAMLError as error:
        raise UsageError(f"{label}: this is no valid YAML ({' '.join(str(error).split())}); correct it.") from None
    except (RecursionError, ValueError):
        # ValueError also for dates that no calendar has, such as 2026-02-30.
        raise UsageError(f"{label}: a value is nested too deeply or does not exist; write plain values.") from None
    if data is None:
        return Source(label, {}, {})
    if not isinstance(root, yaml.MappingNode) or not isinstance(data, dict):
        raise UsageError(f"{label}:1: a profile is a mapping of vLLM options, such as `max-num-seqs: 64`; this is not.")
    lines: dict[tuple[str, ...], int] = {}
    _collect(root, (), lines, label)
    return Source(label, {str(key): value for key, value in data.items()}, lines)


def _collect(node: yaml.MappingNode, above: tuple[str, ...], lines: dict[tuple[str, ...], int], label: str) -> None:
    for key_node, value_node in node.value:
        keys = (*above, str(key_node.value))
        line = key_node.start_mark.line + 1
        if keys in lines:
            raise UsageError(
                f"{label}:{line}: {keys[-1]} stands here and in line {lines[keys]}; YAML would silently take the "
                "last one, so remove one."
            )
        lines[keys] = line
        if isinstance(value_node, yaml.MappingNode) and len(keys) == 1:
            _collect(value_node, keys, lines, label)
