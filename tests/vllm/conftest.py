"""One real sweep on the CPU vLLM, shared by all tests here: it is the expensive part."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from loadgen.store.folder import RunFolder

ROOT = Path(__file__).resolve().parents[2]
LEVELS = (1, 2, 4)
MAX_TOKENS = 96
"""Natural ends below this: with ignore_eos a small model falls into loops, which fakes acceptance."""
LIMIT_S = 14 * 60.0


def what_is_missing() -> str | None:
    """What `make vllm-cpu` would have to make first."""
    for path in (ROOT / ".venv-vllm/bin/python", ROOT / "models/smollm2/config.json"):
        if not path.exists():
            return f"{path.relative_to(ROOT)} is missing; run `make vllm-cpu`"
    return None


@pytest.fixture(scope="session")
def real_run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """The run folder of baseline and ngram over two workloads at temperature 0, on the real server."""
    missing = what_is_missing()
    if missing:
        # A skip in CI would be a green light for something that nobody ran.
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    runs = tmp_path_factory.mktemp("runs")
    command = [sys.executable, "-m", "loadgen", "sweep", "--profile", "ngram", "--engine", "process", "--json"]
    command += ["--workload", "code-edit,chat", "--levels", ",".join(str(level) for level in LEVELS)]
    command += ["--temperature", "0", "--repeats", "1", "--window", "15", "--max-tokens", str(MAX_TOKENS)]
    command += ["--runs", str(runs)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    folders = [path for path in runs.iterdir() if path.is_dir() and not path.is_symlink()]
    assert len(folders) == 1, f"no run folder; exit code {done.returncode}: {done.stderr[-3000:]}"
    # One repeat carries no interval, so "no verdict" (3) is a right answer here; a crash or a wrong use is not.
    assert done.returncode in (0, 3), f"exit code {done.returncode}: {done.stderr[-3000:]}"
    return RunFolder(folders[0])
