"""A large run: 9 levels x 6 profiles x 5 repeats, a million chunks. Sizes are asserted, never times."""

import importlib.util
import resource
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOST_MEMORY_KB = 500 * 1024
MOST_PAGE_BYTES = 2_000_000


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_large_run", ROOT / "tools" / "make_large_run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # its dataclasses look their module up by name
    sys.modules["make_large_run"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "large"
    assert tool().write_large_run(path) > 990_000
    return path


def test_the_report_of_a_million_chunks_fits_in_memory_and_in_a_page(large: Path) -> None:
    command = [sys.executable, "-m", "loadgen", "report", str(large)]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    # the largest child so far: this one, or a smaller one of another test
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < MOST_MEMORY_KB
    page = (large / "report.html").read_text(encoding="utf-8")
    assert len(page.encode()) < MOST_PAGE_BYTES
    for profile in ("ngram", "suffix", "mtp"):
        assert profile in page


def test_a_plan_of_a_million_chunks_resolves_p99(large: Path) -> None:
    command = [sys.executable, "-m", "loadgen", "plan", str(large), "--slo", "ttft_p99=1s", "--json"]
    done = subprocess.run(command, check=True, capture_output=True, cwd=ROOT, text=True)
    assert '"verdict": "met"' in done.stdout
