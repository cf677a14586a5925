"""`--vllm-version`: what a vLLM overrides, ignores or refuses can be tried over HTTP."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from loadgen.engines.base import StartRequest
from loadgen.engines.choose import EngineRequest, choose_engine
from loadgen.engines.server_info import SCHEDULE, ask_server_info
from loadgen.engines.simulator import SimulatorEngine
from loadgen.errors import UsageError
from loadgen.profiles.loader import load_profile, parse_profile
from loadgen.simulator.launch import Launch, LaunchOptions, launch, whole_version
from loadgen.simulator.server import SimulatorServer

PROFILES = Path(__file__).resolve().parents[2] / "server_profiles"
RANGES = "[[1, 8, 3], [9, 256, 0]]"


def parts(method: str, version: str, *, schedule: bool = True, more: str = "", **options: Any) -> Launch:
    text = f"speculative-config:\n  method: {method}\n  num_speculative_tokens: 3\n"
    text += "  model: draft\n" if method not in ("ngram", "suffix") else ""
    text += f"  {SCHEDULE}: {RANGES}\n" if schedule else ""
    profile = parse_profile(text + more, name="p", label="p.yaml")
    return launch(profile, LaunchOptions(noise="off", version=version, **options))


async def told(made: Launch) -> tuple[str, dict[str, Any]]:
    """(version, effective configuration) as a client reads them."""
    server = SimulatorServer(made.core, made.times, made.answers, made.spec)
    url = f"http://127.0.0.1:{await server.start('127.0.0.1', 0)}"
    try:
        async with httpx2.AsyncClient(base_url=url, trust_env=False) as client:
            return (await client.get("/version")).json()["version"], await ask_server_info(client)
    finally:
        await server.stop()


@pytest.mark.parametrize(
    ("method", "version", "graphs", "asynchronous"),
    [
        ("draft_model", "0.26.0", "PIECEWISE", False),
        ("draft_model", "0.32.0", "FULL_AND_PIECEWISE", True),
        ("eagle", "0.24.0", "PIECEWISE", True),
        ("eagle", "0.26.0", "FULL_AND_PIECEWISE", True),
        ("ngram", "0.32.0", "PIECEWISE", False),
    ],
)
async def test_a_schedule_costs_graphs_where_the_version_runs_v1(
    method: str, version: str, graphs: str, asynchronous: bool
) -> None:
    seen, effective = await told(parts(method, version))
    assert seen == version
    assert (effective["graph_mode"], effective["async_scheduling"]) == (graphs, asynchronous)
    assert effective["speculation"] == {
        "method": method,
        "num_speculative_tokens": 3,
        SCHEDULE: [[1, 8, 3], [9, 256, 0]],
    }
    _, static = await told(parts(method, version, schedule=False))
    assert static["graph_mode"] == "FULL_AND_PIECEWISE"
    assert static["speculation"][SCHEDULE] is None


async def test_the_environment_forces_runner_v1() -> None:
    _, effective = await told(parts("eagle", "0.28.0", force_v1=True))
    assert (effective["graph_mode"], effective["model_runner"]) == ("PIECEWISE", "v1")
    assert parts("eagle", "0.28.0").core.config.drafts_full_k
    assert not parts("eagle", "0.28.0", force_v1=True).core.config.drafts_full_k
    assert not parts("eagle", "0.32.0").core.config.drafts_full_k


async def test_data_parallelism_drops_the_schedule() -> None:
    made = parts("eagle", "0.32.0", more="data-parallel-size: 2\n")
    _, effective = await told(made)
    assert effective["data_parallel_size"] == 2
    assert effective["speculation"][SCHEDULE] is None
    assert "falling back to static num_speculative_tokens=3" in made.core.config.notes[0]


@pytest.mark.parametrize(
    ("method", "version", "schedule", "reason"),
    [
        ("ngram", "0.23.0", True, "num_speculative_tokens_per_batch_size came with vLLM 0.24.0"),
        ("suffix", "0.10.0", False, "method suffix came with vLLM 0.11.1"),
        ("ngram", "0.9.2", False, "knows vLLM from 0.10.0 on"),
    ],
)
def test_what_a_version_does_not_know_ends_its_start(method: str, version: str, schedule: bool, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parts(method, version, schedule=schedule)


def test_0_23_has_no_off_switch_and_still_serves() -> None:
    config = parts("ngram", "0.23.0", schedule=False).core.config
    assert (config.runner, config.schedule) == ("V1", None)
    assert parts("eagle", "0.13.0", schedule=False).core.config.async_scheduling is False


def test_a_version_is_read_strictly() -> None:
    assert whole_version("0.26") == "0.26.0"
    with pytest.raises(UsageError, match="--vllm-version"):
        whole_version("new")


async def test_the_engine_passes_it_on(tmp_path: Path) -> None:
    engine, _ = choose_engine(EngineRequest(name="simulator", vllm_version="0.26"))
    assert isinstance(engine, SimulatorEngine)
    path = PROFILES / "ngram.yaml"
    request = StartRequest(load_profile("ngram", PROFILES), path, tmp_path / "log")
    command = (await engine.prepare(request, 1)).command
    assert command[command.index("--vllm-version") + 1] == "0.26"
    with pytest.raises(UsageError, match="--vllm-version is the simulator's"):
        choose_engine(EngineRequest(name="url", url="http://127.0.0.1:1", vllm_version="0.26"))
