import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.run import takes_part
from benchmarks.scenarios import MEMORY, PACED_32

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


def test_the_final_run_asks_peers_once_and_ten_million_events_of_ours_alone() -> None:
    assert [takes_part("loadgen", PACED_32, number) for number in range(3)] == [True] * 3
    assert [takes_part("aiperf", PACED_32, number) for number in range(3)] == [True, False, False]
    assert takes_part("aiperf", PACED_32, 2, peer_rounds=3)
    assert [takes_part(name, MEMORY, 0) for name in ("loadgen", "reference", "aiperf")] == [True, False, False]
    assert not takes_part("loadgen", MEMORY, 1)


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    command = [sys.executable, "-m", "benchmarks.run", "--clients", "wrk"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "'wrk' is not one of reference, loadgen" in done.stderr
