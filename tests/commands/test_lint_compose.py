"""Each fault of a Compose file (cases.md, part E), planted one by one in a good one."""

from pathlib import Path

import pytest

from loadgen.commands.check_files import own_files
from loadgen.commands.lint_compose import lint_compose
from loadgen.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]
GOOD = """
services:
  vllm:
    image: vllm/vllm-openai:v0.32.0
    command: --model Qwen/Qwen3-8B --port 8000 --tensor-parallel-size 2
    environment:
      HF_TOKEN: ${HF_TOKEN:-}
    ipc: host
    init: true
    restart: "no"
    stop_grace_period: 60s
    ports: ["127.0.0.1:${VLLM_PORT:-18000}:8000"]
    volumes: ["~/.cache/huggingface:/root/.cache/huggingface"]
    healthcheck:
      test: [CMD, curl, -f, "http://127.0.0.1:8000/health"]
      interval: 10s
      retries: 3
      start_period: 900s
    deploy:
      resources:
        reservations:
          devices: [{driver: nvidia, count: 2, capabilities: [gpu]}]
  client:
    image: example/client:1.2
    depends_on:
      vllm: {condition: service_healthy}
"""


def codes(folder: Path, text: str) -> set[str]:
    path = folder / "compose.yml"
    path.write_text(text)
    return {finding.code for finding in lint_compose(path)}


def planted(folder: Path, before: str, after: str) -> set[str]:
    assert GOOD.count(before) == 1, before
    return codes(folder, GOOD.replace(before, after))


def test_a_good_file_has_no_finding(tmp_path: Path) -> None:
    assert codes(tmp_path, GOOD) == set()


@pytest.mark.parametrize("name", sorted(path.name for path in ROOT.glob("docker-compose*.yml")))
def test_our_own_files_have_none(name: str) -> None:
    if name == "docker-compose.yml":
        assert own_files(ROOT).compose == (ROOT / name,)
    assert lint_compose(ROOT / name) == []


def test_c87_started_is_not_ready(tmp_path: Path) -> None:
    fault = planted(tmp_path, "      vllm: {condition: service_healthy}", "      vllm: {condition: service_started}")
    assert fault == {"started-not-ready"}
    assert planted(tmp_path, "\n      vllm: {condition: service_healthy}", " [vllm]") == {"started-not-ready"}


def test_c88_short_start_period(tmp_path: Path) -> None:
    assert planted(tmp_path, "start_period: 900s", "start_period: 5s") == {"short-start-period"}
    assert planted(tmp_path, "      start_period: 900s\n", "") == {"short-start-period"}
    assert planted(tmp_path, "start_period: 900s", "start_period: ${START:-30s}") == {"short-start-period"}


@pytest.mark.parametrize("policy", ["always", "unless-stopped", "on-failure"])
def test_c89_restart_loop(tmp_path: Path, policy: str) -> None:
    assert planted(tmp_path, 'restart: "no"', f"restart: {policy}") == {"restart-loop"}


SECOND = """
  second:
    extends_nothing: true
    image: vllm/vllm-openai:v0.32.0
    command: --gpu-memory-utilization 0.48
    ipc: host
    init: true
    stop_grace_period: 60s
    volumes: ["cache:/root/.cache/huggingface"]
    healthcheck: {start_period: 900s}
    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 1, capabilities: [gpu]}]}}}
"""


def test_c90_two_servers_on_one_gpu(tmp_path: Path) -> None:
    first = GOOD.replace("--tensor-parallel-size 2", "--gpu-memory-utilization 0.48")
    assert codes(tmp_path, first + SECOND) == {"two-on-one-gpu"}
    # The sum fits and they start one after the other.
    waits = SECOND + "    depends_on: {vllm: {condition: service_healthy}}\n"
    assert codes(tmp_path, first + waits) == set()
    # The sum does not fit, whatever the order.
    greedy = waits.replace("0.48", "0.6")
    assert codes(tmp_path, first + greedy) == {"two-on-one-gpu"}
    # Never up together.
    apart = first.replace("  vllm:\n", "  vllm:\n    profiles: [a]\n", 1) + SECOND + "    profiles: [b]\n"
    assert codes(tmp_path, apart) == set()


@pytest.mark.parametrize(
    ("device", "code"),
    [
        ("{driver: nvidia, capabilities: [gpu]}", "gpu-count"),
        ("{driver: nvidia, count: 2}", "gpu-capabilities"),
        ('{driver: nvidia, count: 2, device_ids: ["0"], capabilities: [gpu]}', "count-and-ids"),
    ],
)
def test_c91_gpu_reservation(tmp_path: Path, device: str, code: str) -> None:
    assert planted(tmp_path, "{driver: nvidia, count: 2, capabilities: [gpu]}", device) == {code}


def test_c91_no_gpu_at_all(tmp_path: Path) -> None:
    assert planted(tmp_path, "devices: [{driver: nvidia, count: 2, capabilities: [gpu]}]", "devices: []") == {"no-gpu"}


@pytest.mark.parametrize("instead", ["", "    shm_size: 64m\n", "    shm_size: ${SHM:-1g}\n"])
def test_c92_shared_memory(tmp_path: Path, instead: str) -> None:
    assert planted(tmp_path, "    ipc: host\n", instead) == {"shared-memory"}


def test_c92_enough_shared_memory(tmp_path: Path) -> None:
    assert planted(tmp_path, "    ipc: host\n", "    shm_size: 8gb\n") == set()


@pytest.mark.parametrize("mount", ["./data:/data", "cache:/models", "cache:/root/.cache/torch"])
def test_c93_cache_at_the_wrong_place(tmp_path: Path, mount: str) -> None:
    assert planted(tmp_path, "~/.cache/huggingface:/root/.cache/huggingface", mount) == {"cache-place"}


def test_c93_cache_elsewhere_if_hf_home_says_so(tmp_path: Path) -> None:
    moved = GOOD.replace("HF_TOKEN: ${HF_TOKEN:-}", "HF_HOME: /data/hf").replace(
        "~/.cache/huggingface:/root/.cache/huggingface", "./data:/data"
    )
    assert codes(tmp_path, moved) == set()


@pytest.mark.parametrize(
    "line",
    [
        "HF_TOKEN: " + "hf" + "_" + "A" * 34,
        "VLLM_API_KEY: secret-of-mine",
        "OTHER: " + "sk" + "-" + "a" * 40,
    ],
)
def test_c93_token_in_the_file(tmp_path: Path, line: str) -> None:
    assert planted(tmp_path, "HF_TOKEN: ${HF_TOKEN:-}", line) == {"token-in-file"}


def test_c93_api_key_on_the_command_line(tmp_path: Path) -> None:
    assert planted(tmp_path, "--port 8000", "--port 8000 --api-key abc123") == {"token-in-file"}
    assert planted(tmp_path, "--port 8000", "--port 8000 --api-key ${VLLM_API_KEY:-none}") == set()


def test_c93_old_token_name(tmp_path: Path) -> None:
    fault = planted(tmp_path, "HF_TOKEN: ${HF_TOKEN:-}", "HUGGING_FACE_HUB_TOKEN: ${HF_TOKEN:-}")
    assert fault == {"old-token-name"}


def test_c94_container_port(tmp_path: Path) -> None:
    assert planted(tmp_path, "18000}:8000", "18000}:8001") == {"container-port"}


@pytest.mark.parametrize(
    "port",
    ['"8000:8000"', '"0.0.0.0:8000:8000"', '"8000"', "{published: 8000, target: 8000}", '"[::]:8000:8000"'],
)
def test_c95_port_on_all_interfaces(tmp_path: Path, port: str) -> None:
    assert planted(tmp_path, '"127.0.0.1:${VLLM_PORT:-18000}:8000"', port) == {"open-port"}


def test_c95_long_form_on_localhost(tmp_path: Path) -> None:
    port = "{host_ip: 127.0.0.1, published: 8000, target: 8000}"
    assert planted(tmp_path, '"127.0.0.1:${VLLM_PORT:-18000}:8000"', port) == set()


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("    init: true\n", "", "no-init"),
        ("    stop_grace_period: 60s\n", "", "stop-grace"),
        ("stop_grace_period: 60s", "stop_grace_period: 5s", "stop-grace"),
        ("    command: --model", "    command: sh -c 'vllm serve'\n    x: --model", "shell-form"),
    ],
)
def test_c96_what_leaves_workers_behind(tmp_path: Path, before: str, after: str, code: str) -> None:
    assert planted(tmp_path, before, after) == {code}


@pytest.mark.parametrize("image", ["vllm/vllm-openai", "vllm/vllm-openai:latest", "host:5000/vllm-openai:nightly"])
def test_unpinned_image(tmp_path: Path, image: str) -> None:
    assert planted(tmp_path, "vllm/vllm-openai:v0.32.0", image) == {"unpinned-image"}


def test_a_digest_is_pinned(tmp_path: Path) -> None:
    assert planted(tmp_path, "vllm-openai:v0.32.0", "vllm-openai@sha256:" + "a" * 64) == set()


@pytest.mark.parametrize("text", ["a: [", "[]", "services: 3"])
def test_no_compose_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError):
        codes(tmp_path, text)


def test_a_finding_is_one_line_with_its_cure(tmp_path: Path) -> None:
    path = tmp_path / "compose.yml"
    path.write_text(GOOD.replace('restart: "no"', "restart: always"))
    (finding,) = lint_compose(path)
    assert "\n" not in finding.line
    assert 'write restart: "no"' in finding.line
    assert finding.line.startswith("error ")
