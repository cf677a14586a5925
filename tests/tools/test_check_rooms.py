import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def package(folder: Path, room: str, text: str) -> Path:
    (folder / room).mkdir(parents=True)
    (folder / room / "a.py").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("room", "text", "word"),
    [
        ("metrics", "from loadgen.store.model import CellKey\n", "comes after"),
        ("metrics", "import loadgen.sweep.plan\n", "comes after"),
        ("load", "def f() -> None:\n    from loadgen.metrics import delta\n", "comes after"),
        ("load", "from loadgen import report\n", "comes after"),
        ("load", "from . import record\n", "relative"),
        ("kitchen", "x = 1\n", "no room"),
        ("load", "from loadgen.kitchen import knife\n", "no room"),
    ],
)
def test_a_breach_is_found(tmp_path: Path, room: str, text: str, word: str) -> None:
    (sentence,) = tool("check_rooms").breaches(package(tmp_path, room, text))
    assert word in sentence


@pytest.mark.parametrize(
    "text", ["from loadgen.load import record\n", "from loadgen.errors import UsageError\n", "import os\n"]
)
def test_imports_up_the_list_pass(tmp_path: Path, text: str) -> None:
    assert tool("check_rooms").breaches(package(tmp_path, "metrics", text)) == []


def test_the_house_keeps_its_order() -> None:
    assert tool("check_rooms").breaches(ROOT / "loadgen") == []
