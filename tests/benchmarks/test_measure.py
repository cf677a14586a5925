import json
import subprocess
import sys
from pathlib import Path

MEASURE = Path(__file__).resolve().parents[2] / "benchmarks" / "measure.py"

BURN = "import time\nwhile time.process_time() < 0.2: pass\n"
ORPHAN = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {BURN!r}], start_new_session=True)\n"


def measured(tmp_path: Path, code: str, timeout_s: float = 20.0) -> tuple[int, dict[str, float]]:
    out = tmp_path / "cost.json"
    command = [sys.executable, str(MEASURE), "--timeout", str(timeout_s), "--out", str(out), "--"]
    done = subprocess.run([*command, sys.executable, "-c", code], timeout=60, check=False)
    return done.returncode, json.loads(out.read_text(encoding="utf-8"))


def test_orphans_count(tmp_path: Path) -> None:
    code, cost = measured(tmp_path, ORPHAN)
    assert code == 0
    assert cost["cpu_s"] >= 0.2
    assert cost["peak_rss_mb"] > 1


def test_exit_code_passes_through(tmp_path: Path) -> None:
    assert measured(tmp_path, "raise SystemExit(3)")[0] == 3


def test_a_command_past_its_time_is_ended(tmp_path: Path) -> None:
    code, cost = measured(tmp_path, "import time\ntime.sleep(60)", timeout_s=0.3)
    assert code == 124
    assert cost["code"] == 124
