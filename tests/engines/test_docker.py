"""The docker engine's own logic, with a Compose that starts a plain process; the real one is in tests/stack."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from loadgen.engines.base import Engine, EngineEvent, StartRequest
from loadgen.engines.child import Graces
from loadgen.engines.docker import DockerEngine, check_service
from loadgen.engines.docker_compose import Service
from loadgen.engines.docker_gpu import GpuUse
from loadgen.engines.docker_watch import ContainerState, DockerWatch
from loadgen.errors import ServerError, UsageError
from loadgen.profiles.loader import parse_profile

COMPOSE = Path(__file__).with_name("fake_compose.py")
RequestFor = Callable[..., StartRequest]


@dataclass
class FakeWatch(DockerWatch):
    """What a Docker engine would say."""

    running: bool = True
    late_looks: int = 0
    """How often it still says running once it is not."""
    oom: bool = False
    image: bool = True
    uses: list[GpuUse] = field(default_factory=list)
    network: str | None = None
    left: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    def close(self) -> None:
        pass

    def state(self, project: str) -> ContainerState | None:
        if self.running or self.late_looks > 0:
            self.late_looks -= not self.running
            return ContainerState("running", 4711, None, False)
        return None

    def was_oom_killed(self, project: str, since: int) -> bool:
        return self.oom

    def facts(self, project: str) -> dict[str, Any]:
        return {"container": f"{project}-vllm-1", "image_id": "sha256:1", "image_digests": ["vllm@sha256:2"]}

    def has_image(self, name: str) -> bool:
        return self.image

    def gpu_uses(self, except_projects: frozenset[str] = frozenset()) -> list[GpuUse]:
        return self.uses

    def publisher(self, port: int) -> str | None:
        return None

    def stack_network(self, folder: Path) -> str | None:
        return self.network

    def remains(self, project: str) -> list[str]:
        return self.left

    def remove_remains(self, project: str) -> None:
        self.removed += self.left
        self.left = []


@dataclass
class Bench:
    """A project folder with a fake Compose, and an engine on it."""

    folder: Path
    watch: FakeWatch
    engine: DockerEngine

    def journal(self) -> list[str]:
        return (self.folder / "journal").read_text(encoding="utf-8").split()

    def service(self, **changes: Any) -> None:
        service = {"image": "vllm/vllm-openai:v0.32.0", "entrypoint": ["vllm", "serve"], "command": ["fake"], **changes}
        (self.folder / "service.json").write_text(json.dumps(service), encoding="utf-8")

    def server(self, *arguments: str) -> None:
        (self.folder / "server.json").write_text(json.dumps(arguments), encoding="utf-8")


@pytest.fixture
def make_bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Bench]:
    monkeypatch.setenv("FAKE_FOLDER", str(tmp_path))
    for name in ("VLLM_PORT", "COMPOSE_FILE", "VLLM_API_KEY", "MODEL"):
        monkeypatch.delenv(name, raising=False)
    program = tmp_path / "docker-compose"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {COMPOSE} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "docker-compose.yml").touch()
    monkeypatch.setattr("loadgen.engines.docker_compose._candidates", lambda: [(str(program),)])
    monkeypatch.setattr("loadgen.engines.docker_compose._version", lambda command: "5.6.1")

    def make(**options: Any) -> Bench:
        watch = FakeWatch()
        engine = DockerEngine(folder=tmp_path, watch=watch, graces=Graces(5.0, 2.0, 2.0), **options)
        bench = Bench(tmp_path, watch, engine)
        bench.service()
        bench.server()
        return bench

    return make


@pytest.fixture
async def bench(make_bench: Callable[..., Bench]) -> AsyncIterator[Bench]:
    made = make_bench()
    yield made
    await made.engine.close()


def silent(event: EngineEvent) -> None:
    del event


async def test_a_server_goes_up_and_down_through_compose(
    bench: Bench, request_for: RequestFor, events: list[EngineEvent]
) -> None:
    request = request_for("--max-num-seqs", "8", name="ngram")
    server = await bench.engine.start(request, events.append)

    assert server.command[:3] == ("docker", "compose", "-p")
    assert server.pid == 4711
    assert server.effective["image_digests"] == ["vllm@sha256:2"]
    assert server.effective["container_command"] == ["vllm", "serve", "fake"]
    assert await bench.engine.check_alive(server) is None
    started = json.loads((bench.folder / "environment.json").read_text(encoding="utf-8"))
    assert (started["PROFILE"], started["LOADGEN_ARGS"]) == ("ngram", "--max-num-seqs 8")
    assert started["SERVER_PROFILES"] == str(request.config_path.parent)
    assert started["LOADGEN_SERVER_FAKE_SETTING"] == "as given"
    override = request.log_path.with_suffix(".compose.yml").read_text(encoding="utf-8")
    assert "FAKE_SETTING" in override
    assert "as given" not in override

    await bench.engine.stop(server, events.append)

    # One signal for Compose, not two: the second would kill.
    assert bench.journal() == ["config", "config", "up", "SIGINT", "down"]
    assert [event.phase for event in events][-2:] == ["stopping", "stopped"]
    assert "docker compose -p loadgen-" in events[0].detail
    assert "vllm/vllm-openai:v0.32.0: vllm serve fake" in events[0].detail


async def test_the_engine_is_an_engine(bench: Bench) -> None:
    protocol: Engine = bench.engine
    assert (protocol.name, protocol.simulated, protocol.can_run_together) == ("docker", False, False)


async def test_c88_a_container_that_exits_is_not_waited_for_and_goes_down(
    bench: Bench, request_for: RequestFor
) -> None:
    bench.server("--exit-after", "0.1")
    with pytest.raises(ServerError, match=r"ended with exit code 7 before it was ready[\s\S]*no room for the KV cache"):
        await bench.engine.start(request_for(timeout_s=600.0), silent)
    assert bench.journal()[-1] == "down"


async def test_a_known_failure_comes_with_its_cure(bench: Bench, request_for: RequestFor) -> None:
    bench.watch.oom = True
    bench.server("--exit-after", "0.1")
    with pytest.raises(ServerError, match=r"^The kernel ended it for want of main memory"):
        await bench.engine.start(request_for(), silent)


async def test_a_container_that_died_is_told_once_compose_has_noticed(bench: Bench, request_for: RequestFor) -> None:
    bench.server("--die-at-completion")
    bench.watch.running = False
    with pytest.raises(ServerError, match="exit code 3"):
        await bench.engine.start(request_for(), silent)

    bench.server()
    bench.watch.running = True
    server = await bench.engine.start(request_for(), silent)
    os.kill(int((bench.folder / "pid").read_text(encoding="utf-8")), signal.SIGKILL)
    # The connection breaks first, then Docker knows, and the exit code comes when Compose has taken the project down.
    bench.watch.running, bench.watch.oom, bench.watch.late_looks = False, True, 2
    sentence = await bench.engine.check_alive(server)
    assert sentence is not None
    assert sentence.startswith("The kernel ended it for want of main memory")
    assert "The server of baseline ended with exit code 9" in sentence


@pytest.mark.parametrize("turns", [0, 5, 40])
async def test_c96_a_start_cancelled_at_any_moment_leaves_nothing(
    bench: Bench, request_for: RequestFor, turns: int
) -> None:
    bench.server("--no-listen")
    task = asyncio.create_task(bench.engine.start(request_for(), silent))
    for _ in range(turns):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    calls = bench.journal() if (bench.folder / "journal").exists() else []
    assert "up" not in calls or calls[-1] == "down"


async def test_c96_what_compose_left_behind_is_removed(bench: Bench, request_for: RequestFor) -> None:
    server = await bench.engine.start(request_for(), silent)
    bench.watch.left = ["late-container", "late-network"]
    await bench.engine.stop(server, silent)
    assert bench.watch.removed == ["late-container", "late-network"]


async def test_a_missing_image_is_pulled_before_the_clock_of_the_start_runs(
    bench: Bench, request_for: RequestFor, events: list[EngineEvent]
) -> None:
    bench.watch.image = False
    await bench.engine.stop(await bench.engine.start(request_for(), events.append), silent)
    assert bench.journal()[:4] == ["config", "pull", "config", "up"]
    assert events[0].detail == "pulling vllm/vllm-openai:v0.32.0, once"


async def test_c90_a_gpu_that_is_taken_is_refused_before_anything_starts(bench: Bench, request_for: RequestFor) -> None:
    device = {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
    bench.service(deploy={"resources": {"reservations": {"devices": [device]}}})
    bench.watch.uses = [GpuUse("loadgen-vllm-1", frozenset({"0"}), 0.9)]
    with pytest.raises(ServerError, match=r"GPU 0 is taken: with 0\.92 for this server and loadgen-vllm-1 \(0\.90\)"):
        await bench.engine.start(request_for(), silent)
    assert "up" not in bench.journal()


async def test_c89_memory_that_a_dead_server_holds_is_named_with_its_holder(
    bench: Bench, request_for: RequestFor, events: list[EngineEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    held = [{0: 100, 1: 60_000}]

    async def used() -> dict[int, int]:
        return dict(held[-1])

    async def holders() -> str:
        return "pid 4711 (VLLM::EngineCore, 34000 MiB)"

    monkeypatch.setattr("loadgen.engines.gpu.used_mib", used)
    monkeypatch.setattr("loadgen.engines.gpu.holders", holders)
    bench.engine._release_timeout_s = 0.1
    device = {"driver": "nvidia", "device_ids": ["0"], "capabilities": ["gpu"]}
    bench.service(deploy={"resources": {"reservations": {"devices": [device]}}})
    server = await bench.engine.start(request_for(), silent)
    held.append({0: 34_000, 1: 70_000})

    await bench.engine.stop(server, events.append)
    with pytest.raises(ServerError, match=r"still held, by pid 4711 \(VLLM::EngineCore"):
        await bench.engine.start(request_for(), silent)

    assert "waiting for GPU memory: GPU 0 holds 34000 MiB" in [event.detail for event in events]
    held.append({0: 110, 1: 70_000})
    await bench.engine.start(request_for(), silent)


async def test_side_by_side_gives_each_server_a_gpu(
    make_bench: Callable[..., Bench], request_for: RequestFor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def two() -> list[str]:
        return ["NVIDIA Test", "NVIDIA Test"]

    monkeypatch.setattr("loadgen.engines.gpu.gpu_names", two)
    bench = make_bench(side_by_side=True)
    device = {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
    bench.service(deploy={"resources": {"reservations": {"devices": [device]}}})
    try:
        assert bench.engine.can_run_together
        requests = [request_for(name=name) for name in ("baseline", "ngram")]
        servers = await asyncio.gather(*(bench.engine.start(request, silent) for request in requests))
        assert sorted(server.effective["gpus"] for server in servers) == [["0"], ["1"]]
        overrides = [request.log_path.with_suffix(".compose.yml").read_text(encoding="utf-8") for request in requests]
        assert sorted('"device_ids": ["1"]' in text for text in overrides) == [False, True]
        with pytest.raises(ServerError, match="needs 1 more GPU than the 2 here"):
            await bench.engine.start(request_for(name="suffix-like"), silent)
    finally:
        await bench.engine.close()


def test_side_by_side_needs_free_ports(make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_PORT", "8000")
    with pytest.raises(UsageError, match="cannot both listen on VLLM_PORT"):
        make_bench(side_by_side=True)


def test_a_profile_that_the_image_cannot_run_is_refused() -> None:
    suffix = parse_profile("speculative-config: {method: suffix, num_speculative_tokens: 8}", name="suffix", label="s")
    upstream = Service("vllm/vllm-openai:v0.32.0", ("vllm", "serve", "m"), 1, ())
    with pytest.raises(UsageError, match="--target vllm-suffix"):
        check_service(suffix, upstream)
    check_service(suffix, Service("loadgen-vllm-suffix:v0.32.0", ("vllm", "serve", "m"), 1, ()))
    with pytest.raises(UsageError, match="suffix"):
        check_service(suffix, Service("mine/vllm-suffix:v0.10.0", ("vllm", "serve", "m"), 1, ()))
