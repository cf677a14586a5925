"""The preflight: each fault of a machine, planted one by one. What Docker and the driver say is played back."""

import json
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from loadgen.commands.check_machine import Machine, Reply, check_machine, model_bytes, run_program
from loadgen.commands.lint_finding import Finding, Note

ROOT = Path(__file__).resolve().parents[2]
CONFIG: dict[str, Any] = {
    "name": "loadgen",
    "services": {
        "vllm": {
            "image": "vllm/vllm-openai:v0.32.0",
            "command": ["vllm", "serve", "Qwen/Qwen3-8B", "--port", "8000"],
            "ports": [],
            "volumes": [{"source": "/nowhere/huggingface", "target": "/root/.cache/huggingface"}],
        }
    },
}


@dataclass
class Played:
    """Answers by the beginning of the command line; everything else succeeds without a word."""

    answers: dict[str, Reply] = field(default_factory=dict)

    def __call__(self, words: Sequence[str]) -> Reply:
        line = " ".join(words)
        for start, reply in {**self.answers, **USUAL}.items():
            if start in line:
                return self.answers.get(start, reply)
        return Reply(0, "")


USUAL = {
    "docker version": Reply(0, "29.1.0\n"),
    "docker info": Reply(0, '{"Runtimes": {"nvidia": {}}}'),
    "nvidia-smi -L": Reply(0, "GPU 0: NVIDIA H200\n"),
    "docker image ls": Reply(0, "vllm/vllm-openai:v0.32.0\n"),
    "docker run": Reply(0, "GPU 0: NVIDIA H200\n"),
    "config --format json": Reply(0, json.dumps(CONFIG)),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder, and a `docker` whose Compose tells its version."""
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 2.39.1\n")
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    # A real Compose may stand in the environment that runs this (`make test-stack` installs one there).
    monkeypatch.setattr("loadgen.engines.docker_compose._candidates", lambda: [(str(program), "compose")])
    monkeypatch.delenv("VLLM_IMAGE", raising=False)
    (tmp_path / "docker-compose.yml").write_text((ROOT / "docker-compose.yml").read_text())
    return tmp_path


def checked(
    folder: Path, played: dict[str, Reply] | None = None, *, missing: str = "promtool", free: int = 10**12
) -> list[Finding | Note]:
    def which(name: str) -> str | None:
        return None if name in missing.split() else f"/usr/bin/{name}"

    def free_bytes(_: Path) -> int:
        return free

    machine = Machine(folder, must_have_docker=True, run=Played(played or {}), which=which, free_bytes=free_bytes)
    return list(check_machine(machine))


def findings(answers: list[Finding | Note]) -> list[tuple[str, str]]:
    return [(item.code, item.cure) for item in answers if isinstance(item, Finding)]


def test_a_good_machine_has_no_finding(folder: Path) -> None:
    answers = checked(folder)
    assert findings(answers) == []
    told = " ".join(item.text for item in answers if isinstance(item, Note))
    assert "Docker 29.1.0" in told
    assert "Docker Compose 2.39.1" in told
    assert "a container sees 1 GPU(s)" in told
    assert "10 of 10 fit vLLM 0.32.0" in told


@pytest.mark.parametrize(
    ("missing", "played", "code", "cure"),
    [
        ("docker promtool", {}, "docker-missing", "install it"),
        (
            "promtool",
            {"docker version": Reply(1, "permission denied while trying to connect to the Docker daemon socket")},
            "docker-silent",
            "group docker",
        ),
        ("promtool", {"docker version": Reply(0, "19.03.1")}, "docker-old", "update"),
        (
            "promtool",
            {"nvidia-smi -L": Reply(18, "Failed to initialize NVML: Driver/library version mismatch")},
            "gpu-driver",
            "reboot",
        ),
        ("promtool", {"docker info": Reply(0, '{"Runtimes": {"runc": {}}}')}, "gpu-toolkit", "nvidia-ctk"),
        (
            "promtool",
            {"docker run": Reply(125, 'could not select device driver "nvidia" with capabilities: [[gpu]].')},
            "gpu-in-docker",
            "nvidia-ctk",
        ),
        ("promtool", {"config --format json": Reply(15, "invalid interpolation format")}, "compose-config", ".env"),
        ("", {"promtool check": Reply(1, "FAILED: parsing YAML file")}, "prometheus-config", "correct"),
    ],
)
def test_c91_each_fault_has_its_cure(
    folder: Path, missing: str, played: dict[str, Reply], code: str, cure: str
) -> None:
    ((found, remedy),) = findings(checked(folder, played, missing=missing))
    assert found == code
    assert cure in remedy


def test_no_driver_is_no_fault(folder: Path) -> None:
    assert findings(checked(folder, missing="nvidia-smi promtool")) == []


def config(change: Callable[[dict[str, Any]], None]) -> Reply:
    changed = json.loads(json.dumps(CONFIG))
    change(changed["services"]["vllm"])
    return Reply(0, json.dumps(changed))


def test_c95_a_taken_port_is_told_with_its_owner(folder: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        reply = config(lambda service: service.update(ports=[{"published": str(port), "target": 8000}]))
        answers = checked(folder, {"config --format json": reply})
        (taken,) = [item for item in answers if isinstance(item, Finding)]
        assert (taken.code, taken.where) == ("port-taken", "service vllm")
        assert "pid" in taken.what
        assert "VLLM_PORT" in taken.cure
        # The stack itself is up and holds it: that is no collision.
        ours = {"config --format json": reply, "docker ps": Reply(0, "loadgen\n")}
        assert findings(checked(folder, ours)) == []


def test_disk_for_the_model(folder: Path) -> None:
    assert findings(checked(folder, free=10**9)) == [("disk", "free some space, or set HF_CACHE to a larger disk")]
    cache = folder / "cache"
    (cache / "hub" / "models--Qwen--Qwen3-8B").mkdir(parents=True)
    volumes = [{"source": str(cache), "target": "/root/.cache/huggingface"}]
    there = config(lambda service: service.update(volumes=volumes))
    assert findings(checked(folder, {"config --format json": there}, free=10**9)) == []


def test_a_profile_that_the_version_cannot_run(folder: Path) -> None:
    old = config(lambda service: service.update(image="vllm/vllm-openai:v0.14.1"))
    machine = Machine(folder, False, "draft-model", run=Played({"config --format json": old}), which=lambda _: None)
    found = [item for item in check_machine(machine) if isinstance(item, Finding) and item.is_error]
    assert [item.code for item in found] == ["profile"]
    assert "0.15" in found[0].what + found[0].cure


@pytest.mark.parametrize(
    ("model", "gigabytes"),
    [
        ("Qwen/Qwen3-8B", 16.0),
        ("Qwen/Qwen3-8B-FP8", 8.8),
        ("TheBloke/Llama-2-70B-AWQ", 42.0),
        ("mistralai/Mixtral-8x7B-v0.1", 112.0),
        ("some/model", None),
    ],
)
def test_a_models_size_by_its_name(model: str, gigabytes: float | None) -> None:
    size = model_bytes(model)
    assert (None if size is None else size / 1e9) == pytest.approx(gigabytes)


def test_a_program_that_is_not_there() -> None:
    assert run_program(["no-such-program-of-ours"]).code == 127


@pytest.mark.parametrize(("text", "code"), [("restart: always", 1), ("init: true", 0)])
def test_the_exit_code_says_whether_there_is_an_error(tmp_path: Path, text: str, code: int) -> None:
    path = tmp_path / "compose.yml"
    path.write_text((ROOT / "docker-compose.yml").read_text().replace('restart: "no"', text))
    words = [sys.executable, "-m", "loadgen", "check", "--compose", str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout
    assert ("[restart-loop]" in done.stdout) == bool(code)


def test_a_file_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "loadgen", "check", "--prometheus", str(tmp_path / "none.yml")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "check the path" in done.stderr
