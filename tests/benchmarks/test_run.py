import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(shutil.which("cc") is None, reason="the mock server needs a C compiler")
def test_quick_run_counts_and_shape(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    command = [sys.executable, "-m", "benchmarks.run", "--quick", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["schema"] == 1
    assert (found["missing"], found["faults"]) == ({}, [])
    assert list(found["versions"]) == ["reference", "loadgen"]
    assert list(found["runs"]) == ["quick"]
    for client in ("reference", "loadgen"):
        (one,) = found["runs"]["quick"][client]
        assert (one["events"], one["ttft_n"]) == (12 * 16, 12)
        assert one["cpu_s_per_million"] > 0
        assert one["of_ideal"] > 0
        assert f"| {client} |" in done.stdout


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    command = [sys.executable, "-m", "benchmarks.run", "--clients", "wrk"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "'wrk' is not one of reference, loadgen" in done.stderr
