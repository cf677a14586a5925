"""Compose's words, its files and its answer; and the project's own Compose file, read as YAML."""

import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from loadgen.engines.docker_compose import Compose, compose_files, find_compose, last_value, parse_service
from loadgen.engines.docker_cures import cure
from loadgen.engines.docker_override import Override, local_folder, project_name
from loadgen.errors import ServerError, UsageError
from loadgen.profiles.compat import check_profile
from loadgen.profiles.loader import load_profile
from loadgen.profiles.pairs import is_same_model, targets_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def own() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    return found


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a Compose file, and nothing on the path."""
    (tmp_path / "docker-compose.yml").write_text("services: {}\n", encoding="utf-8")
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setattr("loadgen.engines.docker_compose.shutil.which", lambda name: _which(tmp_path / "bin", name))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.delenv("COMPOSE_FILE", raising=False)
    monkeypatch.setattr("loadgen.engines.docker_compose.plugin_folders", lambda: (tmp_path / "cli-plugins",))
    return tmp_path


def _which(folder: Path, name: str) -> str | None:
    return str(folder / name) if (folder / name).exists() else None


def test_compose_is_docker_s_plugin_or_the_program_of_its_own(project: Path) -> None:
    with pytest.raises(UsageError, match="Docker Compose is missing"):
        find_compose(project)
    docker = program(project / "bin" / "docker", "[ $1 = compose ] && echo v2.40.0")
    found = find_compose(project)
    assert (found.command, found.version) == ((str(docker), "compose"), "2.40.0")
    alone = program(project / "bin" / "docker-compose", "echo 5.6.1")
    assert find_compose(project).command == (str(alone),)
    (project / "cli-plugins").mkdir()
    plugin = program(project / "cli-plugins" / "docker-compose", "echo 5.6.2")
    assert find_compose(project).command == (str(plugin),)
    program(plugin, "exit 1")  # one that does not run is passed over
    assert find_compose(project).command == (str(alone),)


def test_an_old_compose_and_a_missing_file_are_refused(project: Path, tmp_path: Path) -> None:
    program(project / "bin" / "docker-compose", "echo 2.20.3")
    with pytest.raises(UsageError, match=r"2\.20\.3 is older than 2\.24"):
        find_compose(project)
    with pytest.raises(UsageError, match=r"no docker-compose\.yml"):
        find_compose(tmp_path / "bin")


def test_the_files_are_those_that_compose_would_read(project: Path) -> None:
    assert compose_files(project, {}) == (project / "docker-compose.yml",)
    (project / "docker-compose.override.yml").touch()
    assert [path.name for path in compose_files(project, {})] == ["docker-compose.yml", "docker-compose.override.yml"]
    (project / ".env").write_text("MODEL=m\nCOMPOSE_FILE='a.yml:b.yml'\n", encoding="utf-8")
    assert compose_files(project, {}) == (project / "a.yml", project / "b.yml")
    assert compose_files(project, {"COMPOSE_FILE": "c.yml"}) == (project / "c.yml",)


def test_compose_s_own_words_come_with_its_refusal(project: Path) -> None:
    broken = program(project / "bin" / "docker-compose", "echo 'services.vllm: bad' >&2; exit 15")
    compose = Compose((str(broken),), "5.6.1", project, (project / "docker-compose.yml",))
    with pytest.raises(ServerError, match=r"Compose refuses .*: services\.vllm: bad; correct the file"):
        compose.resolve("p", dict(os.environ))


def test_a_service_is_read_from_compose_s_answer() -> None:
    device = {"driver": "nvidia", "device_ids": ["2,3"], "capabilities": ["gpu"]}
    found = parse_service(
        {
            "image": "registry/vllm:v0.32.0@sha256:0",
            "entrypoint": ["vllm", "serve"],
            "command": ["Qwen/Qwen3-8B", "--x", '{"a": "$$b"}'],
            "deploy": {"resources": {"reservations": {"devices": [device]}}},
        }
    )
    assert (found.model, found.version, found.gpu_ids, found.gpu_count) == ("Qwen/Qwen3-8B", "0.32.0", ("2", "3"), None)
    assert found.wants_gpu
    assert found.command[-1] == '{"a": "$b"}'
    plain = parse_service({"image": "vllm:latest", "entrypoint": None, "command": ["--model", "m"]})
    assert (plain.model, plain.version, plain.wants_gpu) == ("m", None, False)
    assert last_value(("--a", "1", "--a=2"), "--a") == "2"


def test_the_override_holds_names_and_never_values(tmp_path: Path) -> None:
    override = Override(("HF_TOKEN", "X"), "loadgen_default", tmp_path, ("1",))
    text = override.text()
    # The one tag that plain YAML does not know is Compose's.
    found = yaml.safe_load(text.replace("!override ", ""))
    vllm = found["services"]["vllm"]
    assert vllm["environment"] == {"HF_TOKEN": "${LOADGEN_SERVER_HF_TOKEN}", "X": "${LOADGEN_SERVER_X}"}
    assert vllm["volumes"] == [
        {"type": "bind", "source": str(tmp_path), "target": str(tmp_path), "read_only": True},
    ]
    assert vllm["deploy"]["resources"]["reservations"]["devices"][0]["device_ids"] == ["1"]
    assert found["networks"] == {"stack": {"name": "loadgen_default", "external": True}}
    assert yaml.safe_load(Override().text()) == {"services": {"vllm": {"environment": {}}}}


def test_a_project_s_name_is_one_that_compose_takes(tmp_path: Path) -> None:
    log = tmp_path / "2026-11-29T16-20-00Z-ngram" / "servers" / "ngram.log"
    name = project_name(log, "Ngram K=2")
    assert re.fullmatch(r"loadgen-2026-11-29t16-20-00z-ngram-ngram-k-2-[0-9a-f]{6}", name)
    assert name != project_name(log, "Ngram K=2")
    assert len(project_name(tmp_path / ("x" * 300) / "servers" / "a.log", "a")) < 100
    assert local_folder(str(tmp_path)) == tmp_path
    assert local_folder("Qwen/Qwen3-8B") is None


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ('could not select device driver "nvidia" with capabilities: [[gpu]]', "NVIDIA Container Toolkit"),
        ("Bind for 127.0.0.1:8000 failed: port is already allocated", "another VLLM_PORT"),
        ("write /x: no space left on device", "docker system df"),
        ("GatedRepoError: 401 Client Error", "export HF_TOKEN"),
        ("all is well", ""),
    ],
)
def test_known_failures_have_a_cure(words: str, remedy: str) -> None:
    assert remedy in cure(words)
    assert bool(cure(words)) == bool(remedy)


# The project's own files.


def test_c95_every_port_is_a_variable_on_the_loopback_address(own: dict[str, Any]) -> None:
    ports = [port for service in own["services"].values() for port in service.get("ports", [])]
    assert len(ports) == 6
    for port in ports:
        assert re.fullmatch(r"127\.0\.0\.1:\$\{[A-Z_]+:-\d+\}:\d+", port), port


def test_c89_no_service_restarts_and_all_end_in_order(own: dict[str, Any]) -> None:
    for name, service in own["services"].items():
        assert service["restart"] == "no", name
        assert service["init"] is True, name
        assert service["logging"]["options"]["max-size"], name
        assert service["healthcheck"], name
    assert own["services"]["vllm"]["stop_grace_period"] == "60s"


def test_c88_c91_c92_c93_the_vllm_service(own: dict[str, Any]) -> None:
    vllm = own["services"]["vllm"]
    assert "--config /server_profiles/${PROFILE:-baseline}.yaml" in vllm["command"]
    assert re.fullmatch(r"\$\{VLLM_IMAGE:-vllm/vllm-openai:v\d+\.\d+\.\d+\}", vllm["image"])
    assert vllm["ipc"] == "host"
    assert int(re.findall(r"\d+", vllm["healthcheck"]["start_period"])[0]) >= 600
    assert vllm["environment"]["HF_TOKEN"] == "${HF_TOKEN:-}"
    assert "${HF_CACHE:-~/.cache/huggingface}:/root/.cache/huggingface" in vllm["volumes"]
    (device,) = vllm["deploy"]["resources"]["reservations"]["devices"]
    assert (device["count"], device["capabilities"]) == ("${GPU_COUNT:-1}", ["gpu"])
    assert "device_ids" not in device


def test_images_are_pinned_and_configuration_is_mounted_for_reading(own: dict[str, Any]) -> None:
    for name, service in own["services"].items():
        default = service["image"].partition(":-")[2].rstrip("}")
        assert ":" in default, name
        assert not default.endswith(":latest"), name
        for volume in service.get("volumes", []):
            if "dashboards" in volume or "server_profiles" in volume:
                assert volume.endswith(":ro"), volume
    assert "docker.sock" not in (ROOT / "docker-compose.yml").read_text(encoding="utf-8")


def settings(path: Path) -> dict[str, str]:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


ENVIRONMENTS = [ROOT / ".env.example", *sorted((ROOT / "env").glob("*.env"))]


@pytest.mark.parametrize("path", ENVIRONMENTS, ids=lambda path: path.name)
def test_an_environment_sets_what_the_compose_file_reads_and_no_secret(path: Path) -> None:
    text = "".join(file.read_text(encoding="utf-8") for file in ROOT.glob("docker-compose*.yml"))
    known = {*re.findall(r"\$\{([A-Z_]+)", text), "COMPOSE_PROFILES", "COMPOSE_FILE"}
    found = settings(path)
    assert set(found) <= known
    assert not [name for name in found if re.search(r"TOKEN|KEY|PASSWORD", name)]


def test_the_example_says_the_defaults(own: dict[str, Any]) -> None:
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    defaults = dict(re.findall(r"\$\{([A-Z_]+):-([^}]*)\}", text))
    said = settings(ROOT / ".env.example")
    del said["COMPOSE_PROFILES"]
    assert {name: defaults[name] for name in said} == said


@pytest.mark.parametrize("path", ENVIRONMENTS, ids=lambda path: path.name)
@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "server_profiles").glob("*.yaml")))
def test_a_profile_fits_an_environment_s_model_or_names_the_right_one(path: Path, name: str) -> None:
    model = settings(path)["MODEL"]
    profile = load_profile(name, ROOT / "server_profiles")
    targets = targets_of(profile.speculative.draft_model) if profile.speculative else ()
    if not targets or any(is_same_model(model, target) for target in targets):
        assert isinstance(check_profile(profile, vllm_version="0.32.0", model=model), list)
    else:
        with pytest.raises(UsageError, match=f"set MODEL={targets[0]}"):
            check_profile(profile, vllm_version="0.32.0", model=model)
