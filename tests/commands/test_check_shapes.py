"""A stack's file with a value of another shape is one sentence, wherever the value stands."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from loadgen.commands.check_files import Files, lint_files
from loadgen.errors import UsageError

FILES: dict[str, tuple[str, dict[str, Any]]] = {
    "compose": (
        "compose.yml",
        {"services": {"vllm": {"environment": {"A": "1"}, "ports": ["8000:8000"], "depends_on": ["a"]}}},
    ),
    "prometheus": (
        "prometheus.yml",
        {"global": {"scrape_interval": "5s"}, "scrape_configs": [{"static_configs": [{"targets": ["a:1"]}]}]},
    ),
    "provisioning": ("sources.yaml", {"datasources": [{"uid": "a", "type": "prometheus", "jsonData": {"a": 1}}]}),
    "dashboards": ("board.json", {"panels": [{"targets": [{"expr": "up"}]}], "templating": {"list": [{"name": "a"}]}}),
}
VALUES: tuple[Any, ...] = (None, 5, "x", [], {}, [5], True, {"a": 1}, [[]])


def places(node: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield above
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, item in items:
        yield from places(item, (*above, key))


def files_of(kind: str, path: Path) -> Files:
    if kind == "prometheus":
        return Files(prometheus=path)
    return {
        "compose": Files(compose=(path,)),
        "provisioning": Files(provisioning=(path,)),
        "dashboards": Files(dashboards=(path,)),
    }[kind]


def changed(node: Any, place: tuple[Any, ...], value: object) -> Any:
    if not place:
        return value
    whole = copy.deepcopy(node)
    inner = whole
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return whole


@pytest.mark.parametrize("kind", FILES)
def test_any_value_anywhere_is_findings_or_one_sentence(kind: str, tmp_path: Path) -> None:
    name, data = FILES[kind]
    path = tmp_path / name
    refused = 0
    for place in places(data):
        for value in VALUES:
            text = changed(data, place, value)
            path.write_text(json.dumps(text) if path.suffix == ".json" else yaml.safe_dump(text), encoding="utf-8")
            try:
                lint_files(files_of(kind, path))
            except UsageError as error:
                refused += 1
                assert str(error).startswith(str(path))  # noqa: PT017  # most values are findings, not errors
    assert refused > 5


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_is_not_utf8_is_said(kind: str, tmp_path: Path) -> None:
    path = tmp_path / FILES[kind][0]
    path.write_bytes(b"a: \xff\xfe\n")
    with pytest.raises(UsageError, match="is not UTF-8 text"):
        lint_files(files_of(kind, path))
