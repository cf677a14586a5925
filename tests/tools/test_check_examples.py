"""The examples follow from their cells, and a figure that does not is found."""

import importlib.util
import json
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from loadgen.store.folder import RunFolder

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = "examples/h200/dense8b"


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_examples", ROOT / "tools" / "check_examples.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_changed_cell_is_found_in_the_summary_and_in_the_verification(check: ModuleType, tmp_path: Path) -> None:
    folder = RunFolder(Path(shutil.copytree(ROOT / EXAMPLE, tmp_path / "run")))
    assert list(check.example_faults(folder)) == []

    for file in (folder.path / "cells.jsonl", folder.path / "verify" / "cells.jsonl"):
        lines = file.read_text(encoding="utf-8").splitlines()
        cell = json.loads(lines[0])
        cell["output_tokens_per_s"] *= 1.001
        file.write_text("\n".join([json.dumps(cell), *lines[1:]]) + "\n", encoding="utf-8")

    faults = list(check.example_faults(folder))
    assert [fault.split(".")[0] for fault in faults] == ["summary", "verify/verification"]
    assert all("from the cells" in fault for fault in faults)


def test_a_figure_needs_its_interval_and_must_be_measured(check: ModuleType) -> None:
    def told(words: str) -> list[str]:
        return list(check.quoted_faults(f"<!-- figures: {EXAMPLE} -->\n{words}\n<!-- end -->"))

    known = sorted(check.figures(RunFolder(ROOT / EXAMPLE)))
    assert told(f"gains {known[-1]}, then {known[0]}") == []
    assert told("gains 9.99× (9.00–11.00, n = 3)") == [
        f"'9.99× (9.00–11.00, n = 3)' is no figure of {EXAMPLE}",
    ]
    assert told("gains " + known[-1].split(" (")[0]) != []
    assert list(check.quoted_faults("no block")) != []
    assert list(check.quoted_faults(f"<!-- table: {EXAMPLE} -->\n| 1 |\n<!-- end -->")) != []
