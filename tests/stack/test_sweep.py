"""`loadgen sweep --engine docker` on a real Docker engine: the simulator's image stands in vLLM's place."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.stack
StartSweep = Callable[..., Any]


def test_a_sweep_starts_and_stops_both_profiles_through_compose(stack: Any, sweep: StartSweep) -> None:
    one = sweep("--profile", "ngram", "--levels", "1,4", "--repeats", "1", "--server-env", "VLLM_USE_V2_MODEL_RUNNER=0")

    assert one.finish() in (0, 3), one.output

    summary = json.loads((one.run / "summary.json").read_text(encoding="utf-8"))
    assert (summary["engine"], summary["interrupted"], summary["vllm_version"]) == ("docker", False, "0.32.0")
    levels = summary["conditions"][0]["profiles"]["ngram"]["levels"]
    assert [level["concurrency"] for level in levels] == [1, 4]
    servers = one.lines_of("servers.jsonl")
    assert [server["profile"] for server in servers] == ["baseline", "ngram"]
    image = stack.engine.run("image", "inspect", "--format", "{{.Id}}", "loadgen:test").strip()
    for server in servers:
        told = server["effective"]
        assert (told["image"], told["image_id"]) == ("loadgen:test", image)
        assert f"/server_profiles/{server['profile']}.yaml" in told["container_command"]
        assert server["command"][:3] == ["docker", "compose", "-p"]
    assert servers[1]["effective"]["async_scheduling"] is False
    # The log is the server's own, whole, without Compose's progress.
    log = (one.run / "servers" / "ngram.log").read_text(encoding="utf-8")
    assert "Initializing a V1 LLM engine" in log
    assert "Creating" not in log
    assert stack.engine.left() == []


def test_prometheus_of_the_running_stack_sees_the_servers_of_a_sweep(stack: Any, sweep: StartSweep) -> None:
    one = sweep("--profile", "baseline-sync", "--levels", "2", "--repeats", "1", "--window", "2")
    one.read_until("server baseline: ready")

    name = stack.engine.servers()[0]
    addresses = stack.engine.run(
        "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}", name
    ).split()
    assert len(addresses) == 2
    pattern = "|".join(f"{address}:8000" for address in addresses)
    assert stack.until_data(f'vllm:generation_tokens_total{{instance=~"{pattern}"}}')

    assert one.finish() in (0, 3), one.output
    assert stack.engine.left() == []


@pytest.mark.parametrize("moment", ["server ngram: starting", "server baseline: health", "[1/"])
def test_c96_ctrl_c_leaves_no_container_network_or_volume(stack: Any, sweep: StartSweep, moment: str) -> None:
    one = sweep("--profile", "ngram", "--levels", "1", "--repeats", "1")
    one.read_until(moment)

    os.killpg(one.process.pid, signal.SIGINT)

    code = one.finish()
    assert stack.engine.left() == []
    assert one.events("interrupted")
    assert "Traceback" not in one.output
    assert code in (3, 130), one.output


def test_sigkill_of_loadgen_leaves_nothing_either(stack: Any, sweep: StartSweep, until: Any) -> None:
    one = sweep("--profile", "ngram", "--levels", "1", "--repeats", "1", "--window", "30")
    one.read_until("server baseline: ready")

    one.process.kill()
    one.process.wait()

    until(lambda: stack.engine.left() == [], "the guard to take the project down")


def test_a_killed_server_fails_the_cell_and_not_the_run(stack: Any, sweep: StartSweep) -> None:
    one = sweep("--profile", "ngram", "--levels", "1,2", "--repeats", "1", "--window", "2")
    one.read_until("server ngram: ready")
    (victim,) = stack.engine.servers()

    stack.engine.run("kill", victim)

    assert one.finish() in (0, 3), one.output
    (failed,) = one.events("cell-failed")
    assert "The server of ngram ended with exit code 137" in failed["text"]
    assert "it is started again" in one.output
    measured = [cell["key"]["profile"] for cell in one.lines_of("cells.jsonl")]
    assert measured == ["baseline", "baseline", "ngram"]
    starts = [server["profile"] for server in one.lines_of("servers.jsonl")]
    assert starts == ["baseline", "ngram", "ngram"]
    assert stack.engine.left() == []


def test_a_server_out_of_memory_is_told_as_such(stack: Any, sweep: StartSweep, tmp_path: Path) -> None:
    small = tmp_path / "small.yml"
    small.write_text("services: {vllm: {mem_limit: 16m, memswap_limit: 16m}}\n", encoding="utf-8")
    files = f"{stack.engine.environment['COMPOSE_FILE']}{os.pathsep}{small}"

    one = sweep("--profile", "ngram", "--levels", "1", "--repeats", "1", COMPOSE_FILE=files)

    assert one.finish() == 3, one.output
    assert "The kernel ended it for want of main memory" in one.output
    assert "before it was ready" in one.output
    assert stack.engine.left() == []


def test_with_the_docker_socket_the_service_s_container_sweeps_too(stack: Any) -> None:
    """docker-compose.socket.yml: Compose inside the container starts servers on the same engine."""
    root = Path(__file__).resolve().parents[2]
    engine = stack.engine
    build = ("build", "--quiet", "--network", "host", "--target", "loadgen-docker")
    engine.run(*build, "--build-arg", "PYTHON_IMAGE=loadgen-test-base:latest", "-t", "loadgen-docker:test", str(root))
    environment = {
        **stack.environment,
        "PWD": str(root),
        "LOADGEN_DOCKER_IMAGE": "loadgen-docker:test",
        "DOCKER_SOCKET": engine.environment["DOCKER_HOST"].removeprefix("unix://"),
        "LOADGEN_UID": str(os.getuid()),
    }
    files = ["-f", "docker-compose.yml", "-f", "docker-compose.socket.yml"]
    inside = ["--rm", "--env", f"COMPOSE_FILE={environment.pop('COMPOSE_FILE')}", "loadgen"]
    sweep = ["sweep", "--engine", "docker", "--runs", str(stack.runs), "--workload", "code-edit", "--levels", "1"]
    sweep += ["--repeats", "1", "--window", "0.4"]
    before = set(stack.runs.iterdir())

    done = subprocess.run(
        [engine.compose, *files, "run", *inside, *sweep],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert done.returncode in (0, 3), done.stdout + done.stderr
    (run,) = set(stack.runs.iterdir()) - before
    assert len((run / "cells.jsonl").read_text(encoding="utf-8").splitlines()) == 2
    assert engine.left() == []


def test_c91_a_gpu_that_docker_cannot_give_is_told_with_the_cure(stack: Any, sweep: StartSweep, tmp_path: Path) -> None:
    devices = "[{driver: nvidia, count: 1, capabilities: [gpu]}]"
    wanting = tmp_path / "gpu.yml"
    wanting.write_text(
        f"services: {{vllm: {{deploy: {{resources: {{reservations: {{devices: {devices}}}}}}}}}}}\n", encoding="utf-8"
    )
    files = f"{stack.engine.environment['COMPOSE_FILE']}{os.pathsep}{wanting}"

    one = sweep("--profile", "ngram", "--levels", "1", "--repeats", "1", COMPOSE_FILE=files)

    assert one.finish() == 3, one.output
    assert "install the NVIDIA Container Toolkit" in one.output
    assert "could not select device driver" in one.output
    assert stack.engine.left() == []


def test_an_image_that_cannot_be_had_is_told_before_anything_starts(
    stack: Any, sweep: StartSweep, tmp_path: Path
) -> None:
    missing = tmp_path / "missing.yml"
    # Port 1 of this machine: nobody answers, wherever the test runs.
    missing.write_text("services: {vllm: {image: '127.0.0.1:1/vllm:v0.32.0'}}\n", encoding="utf-8")
    files = f"{stack.engine.environment['COMPOSE_FILE']}{os.pathsep}{missing}"

    one = sweep("--profile", "ngram", "--levels", "1", "--repeats", "1", COMPOSE_FILE=files)

    assert one.finish() == 3, one.output
    assert "pulling 127.0.0.1:1/vllm:v0.32.0, once" in one.output
    assert "The image 127.0.0.1:1/vllm:v0.32.0 cannot be had" in one.output
    assert stack.engine.left() == []


def test_c95_a_taken_port_is_told_with_its_owner_before_anything_starts(stack: Any, sweep: StartSweep) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]

        one = sweep("--profile", "ngram", "--levels", "1", "--repeats", "1", VLLM_PORT=str(port))

        assert one.finish() == 3
    assert f"Port {port} is taken by " in one.output
    assert f"(pid {os.getpid()})" in one.output
    assert "starting" not in one.output
    assert not (one.run / "servers.jsonl").exists()

    other = sweep("--profile", "ngram", "--levels", "1", "--repeats", "1", VLLM_PORT=str(stack.ports["VLLM_PORT"]))
    assert other.finish() == 3
    assert "is taken by container loadgen-test-stack-simulator-1" in other.output
    assert stack.engine.left() == []


def test_servers_side_by_side_have_projects_of_their_own(stack: Any, tmp_path: Path) -> None:
    """Both up at once, as `--side-by-side` runs them (GPUs of their own: tests/engines/test_docker_gpu.py)."""
    import asyncio

    from loadgen.engines.base import ReadyServer, StartRequest
    from loadgen.engines.docker import DockerEngine
    from loadgen.profiles.loader import load_profile

    async def both() -> list[ReadyServer]:
        engine = DockerEngine(side_by_side=True)
        try:
            assert engine.can_run_together
            ready = await asyncio.gather(*(engine.start(request(name), lambda event: None) for name in NAMES))
            assert len(stack.engine.servers()) == 2
            assert [await engine.check_alive(server) for server in ready] == [None, None]
            await engine.stop(ready[0], lambda event: None)
            assert len(stack.engine.servers()) == 1
            return ready
        finally:
            await engine.close()

    def request(name: str) -> StartRequest:
        profile = load_profile(name, Path("server_profiles"))
        path = Path("server_profiles") / f"{name}.yaml"
        return StartRequest(profile, path, tmp_path / "run" / "servers" / f"{name}.log")

    with pytest.MonkeyPatch.context() as patch:
        for name, value in stack.engine.environment.items():
            patch.setenv(name, value)
        patch.delenv("VLLM_PORT", raising=False)
        one, other = asyncio.run(both())

    assert one.url != other.url
    assert one.effective["container"] != other.effective["container"]
    assert stack.engine.left() == []


NAMES = ("baseline", "ngram")
