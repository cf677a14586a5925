"""Whole numbers of servers as they run: told by the server, else from its command line, in each form vLLM takes."""

import json
from collections.abc import Sequence
from typing import Any

from loadgen.profiles.versions import parse_version
from loadgen.store.model import ServerFacts

_OTHER_NAMES = {
    "data_parallel_size": ("-dp",),
    "max_graph_size": ("--max-cudagraph-capture-size", "--cudagraph-capture-sizes", "--cuda-graph-sizes"),
}
"""Beside `--` and our own name; of several sizes the largest counts."""
_CONFIGS = ("--compilation-config", "-cc", "-O")
_IN_CONFIG = ("max_cudagraph_capture_size", "cudagraph_capture_sizes")


def whole(servers: Sequence[ServerFacts], key: str) -> int | None:
    """The first server's number that is known, by our name of `ServerFacts.effective`; None where unknown."""
    return next((number for server in servers if (number := _of(server, key)) is not None), None)


def largest(servers: Sequence[ServerFacts], key: str) -> int | None:
    """The largest of the servers' numbers; None where all are unknown."""
    return max((number for server in servers if (number := _of(server, key)) is not None), default=None)


def oldest_version(servers: Sequence[ServerFacts]) -> str | None:
    """The oldest vLLM among them, as its server says it: what it cannot do is not advised. None where unknown."""
    told = [server.version for server in servers if server.version]
    known = [(version, text) for text in told if (version := parse_version(text)) is not None]
    return min(known)[1] if known else next(iter(told), None)


def _of(server: ServerFacts, key: str) -> int | None:
    told = server.effective.get(key, server.effective.get(key.replace("_", "-")))
    if isinstance(told, int) and not isinstance(told, bool):
        return told
    names = (f"--{key.replace('_', '-')}", *_OTHER_NAMES.get(key, ()))
    found: list[int] = []
    words = list(server.command)
    while words:
        name, equals, value = words.pop(0).partition("=")
        name = name if name.startswith("-") and not name.startswith("--") else name.replace("_", "-")
        values = [value] if equals else []
        while not equals and words and not words[0].startswith("-"):
            values.append(words.pop(0))
        if name in names:
            found = [int(one) for one in values if one.isdecimal()] or found  # a later word overrides
        elif key == "max_graph_size":
            found = _from_config(name, values) or found
    return max(found, default=None)


def _from_config(name: str, values: Sequence[str]) -> list[int]:
    """The sizes in a compilation config, given as JSON or as `-cc.NAME=VALUE`."""
    option, _, field = name.partition(".")
    if option not in _CONFIGS or len(values) != 1:
        return []
    try:
        config: Any = json.loads(values[0])
    except ValueError:
        return []
    if field:
        config = {field.replace("-", "_"): config}
    sizes = [config.get(one) for one in _IN_CONFIG] if isinstance(config, dict) else []
    flat = [one for size in sizes for one in (size if isinstance(size, list) else [size])]
    return [one for one in flat if isinstance(one, int) and not isinstance(one, bool)]
