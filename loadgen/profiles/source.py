"""YAML bytes to plain data, with the line of each key, so that an error can point at it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from loadgen.errors import UsageError
from loadgen.profiles.values import short
from loadgen.profiles.yaml_text import load_yaml

_OPTION = re.compile(r"<<|-{0,2}[A-Za-z][A-Za-z0-9_.+-]*")
"""Leading dashes have a sentence of their own."""
_TEXT, _MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"


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
    data = load_yaml(text, label)
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        json.dumps(data, default=str, skipkeys=True)  # ValueError for an anchor inside itself, which no file can say
    except (RecursionError, ValueError):
        raise UsageError(f"{label}: a value is nested too deeply or holds itself; write plain values.") from None
    if data is None:
        return Source(label, {}, {})
    if not isinstance(root, yaml.MappingNode) or not isinstance(data, dict):
        raise UsageError(f"{label}:1: a profile is a mapping of vLLM options, such as `max-num-seqs: 64`; this is not.")
    lines: dict[tuple[str, ...], int] = {}
    _check_keys(root, label)
    _refuse_twice(root, label, set())
    _collect(root, (), lines)
    return Source(label, {str(key): value for key, value in data.items()}, lines)


def _check_keys(root: yaml.MappingNode, label: str) -> None:
    """UsageError for a top-level key that names no option, such as `1:` or `yes:`."""
    for key, _ in root.value:
        if isinstance(key, yaml.ScalarNode) and key.tag in (_TEXT, _MERGE) and _OPTION.fullmatch(key.value):
            continue
        said = short(getattr(key, "value", ""))
        kind = "" if key.tag == _TEXT else f" (YAML reads it as {key.tag.rpartition(':')[2]})"
        where = f"{label}:{key.start_mark.line + 1}"
        raise UsageError(f"{where}: {said} is no name of a vLLM option{kind}; write one, such as max-num-seqs.")


def _refuse_twice(node: yaml.Node, label: str, seen: set[int]) -> None:
    """UsageError for a key that stands twice in one mapping, at any depth; each node is looked at once."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_twice(item, label, seen)
    if not isinstance(node, yaml.MappingNode):
        return
    lines: dict[str, int] = {}
    for key, value in node.value:
        name, line = str(key.value), key.start_mark.line + 1
        if name in lines:
            raise UsageError(
                f"{label}:{line}: {name} stands here and in line {lines[name]}; YAML would silently take the last "
                "one, so remove one."
            )
        lines[name] = line
        _refuse_twice(value, label, seen)


def _collect(node: yaml.MappingNode, above: tuple[str, ...], lines: dict[tuple[str, ...], int]) -> None:
    for key_node, value_node in node.value:
        keys = (*above, str(key_node.value))
        lines[keys] = key_node.start_mark.line + 1
        if isinstance(value_node, yaml.MappingNode) and len(keys) == 1:
            _collect(value_node, keys, lines)
