"""The Compose stack on a real Docker engine, and the files that it is made of."""

import json
import os
import re
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loadgen.engines.ports import free_port

pytestmark = pytest.mark.stack
ROOT = Path(__file__).resolve().parents[2]
PROFILES = sorted(path.stem for path in (ROOT / "server_profiles").glob("*.yaml"))
ENVIRONMENTS = [".env.example", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "env").glob("*.env"))]
RunTool = Callable[..., subprocess.CompletedProcess[str]]


def config(engine: Any, *words: str, **environment: str) -> dict[str, Any]:
    kept = {key: value for key, value in engine.environment.items() if key != "COMPOSE_FILE"}
    done = subprocess.run(
        [engine.compose, *words, "config", "--format", "json"],
        cwd=ROOT,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "variable is not set" not in done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("file", ENVIRONMENTS)
def test_compose_takes_every_profile_in_every_environment(engine: Any, file: str) -> None:
    for profile in PROFILES:
        found = config(engine, "--env-file", file, PROFILE=profile, COMPOSE_PROFILES="gpu,locust")

        vllm = found["services"]["vllm"]
        assert f"/server_profiles/{profile}.yaml" in vllm["command"]
        (device,) = vllm["deploy"]["resources"]["reservations"]["devices"]
        assert device["capabilities"] == ["gpu"]
        assert ("count" in device) != ("device_ids" in device)


def test_compose_takes_the_overrides(engine: Any) -> None:
    files = ("-f", "docker-compose.yml", "-f", "docker-compose.socket.yml")
    found = config(engine, *files, COMPOSE_PROFILES="gpu", PWD=str(ROOT))["services"]["loadgen"]
    assert "/var/run/docker.sock" in [mount["source"] for mount in found["volumes"]]
    assert "/var/run/docker.sock" not in json.dumps(config(engine, COMPOSE_PROFILES="gpu,sim,locust"))


def test_the_simulator_stack_serves_and_prometheus_scrapes_it(stack: Any) -> None:
    with urllib.request.urlopen(f"{stack.server_url}/v1/models", timeout=10) as response:
        assert json.load(response)["data"][0]["id"] == "Qwen/Qwen3-8B-FP8"
    assert stack.until_data('up{job="vllm"} == 1')
    assert stack.until_data("vllm:spec_decode_num_drafts_total")


def test_the_service_is_healthy_wants_its_token_and_is_scraped_without(stack: Any) -> None:
    with urllib.request.urlopen(f"{stack.service_url}/health", timeout=10) as response:
        assert response.status == 200
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{stack.service_url}/api/runs", timeout=10)
    assert stack.until_data('up{job="loadgen"} == 1')


def test_the_image_runs_as_nobody_in_particular_on_a_read_only_disk(images: Any) -> None:
    alone = ("run", "--rm", "--network", "none", "--read-only")
    who = images.run(*alone, "--entrypoint", "id", "loadgen:test", "-u").strip()
    assert who == "10001"
    assert "Usage" in images.run(*alone, "loadgen:test", "--help")
    files = images.run(*alone, "--entrypoint", "ls", "loadgen:test", "-A", "/app").split()
    assert sorted(files) == ["loadgen", "locustfile.py", "server_profiles"]


def test_c95_up_tells_a_taken_port_and_starts_nothing(stack: Any, run_tool: RunTool) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = str(holder.getsockname()[1])
        names = {"COMPOSE_PROJECT_NAME": "loadgen-second", "PROMETHEUS_PORT": port}

        done = run_tool("stack_up.py", "prometheus", environment={**stack.environment, **names})

    assert done.returncode == 2
    assert f"port {port} (prometheus) is taken by" in done.stderr
    assert f"(pid {os.getpid()})" in done.stderr
    assert stack.engine.left() == []


def test_c95_a_half_started_stack_is_taken_down(stack: Any, run_tool: RunTool, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yml"
    broken.write_text("services: {simulator: {command: [--config, /no/such/file.yaml]}}\n", encoding="utf-8")
    files = f"{stack.environment['COMPOSE_FILE']}{os.pathsep}{broken}"
    names = {"COMPOSE_PROJECT_NAME": "loadgen-second", "COMPOSE_FILE": files, "PROMETHEUS_PORT": "0", "VLLM_PORT": "0"}

    done = run_tool("stack_up.py", "simulator", "prometheus", environment={**stack.environment, **names})

    assert done.returncode == 3, done.stderr
    assert "/no/such/file.yaml" in done.stdout
    assert "is taken down" in done.stderr
    assert stack.engine.left() == []


def test_up_again_leaves_a_running_stack_as_it_is(stack: Any, run_tool: RunTool) -> None:
    before = stack.engine.run("ps", "-q")

    done = run_tool("stack_up.py", "simulator", "prometheus", environment=stack.environment)

    assert done.returncode == 0, done.stderr
    assert stack.prometheus_url in done.stdout
    assert stack.engine.run("ps", "-q") == before


def test_locust_s_workers_in_containers_fill_one_run_folder(stack: Any) -> None:
    environment = {
        **stack.environment,
        "COMPOSE_PROFILES": "sim,locust",
        "LOCUST_PORT": str(free_port()),
        "LOCUST_ARGS": "--headless --levels 2,4 --repeats 1 --window 0.5",
        "LOADGEN_UID": str(os.getuid()),
        "LOADGEN_GID": str(os.getgid()),
    }
    before = set(stack.runs.iterdir())

    def compose(*words: str) -> str:
        done = subprocess.run(
            [stack.engine.compose, *words],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )
        return done.stdout + done.stderr

    services = ("baseline", "locust-worker", "locust-master")
    try:
        compose("up", "--detach", *services)
        said = compose("wait", "locust-master")
        log = compose("logs", "--no-log-prefix", "locust-master")
    finally:
        compose("rm", "--stop", "--force", *services)

    assert re.search(r"status code [03]$", said.strip()), said + log
    (run,) = set(stack.runs.iterdir()) - before
    cells = [json.loads(line) for line in (run / "cells.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sorted((cell["key"]["profile"], cell["key"]["level"]) for cell in cells) == [
        *(("baseline", 2), ("baseline", 4)),
        *(("ngram", 2), ("ngram", 4)),
    ]
    for cell in cells:
        assert cell["outcomes"]["ok"] > 0
        assert not [kind for kind, count in cell["outcomes"].items() if count and kind not in ("ok", "cancelled")]
