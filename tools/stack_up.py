"""`make up`: checks the ports, starts the stack and waits until all of it is healthy; a half-started one goes down."""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loadgen.engines.docker_compose import Compose, find_compose
from loadgen.engines.docker_cures import cure
from loadgen.engines.docker_watch import PROJECT_LABEL, DockerWatch, connect
from loadgen.engines.ports import is_free, port_holder
from loadgen.errors import ExitCode, LoadgenError, UsageError

WAIT_S = 1800
"""As long as the largest models load."""


def main(services: Sequence[str]) -> int:
    """The exit status. Without services, all of the present COMPOSE_PROFILES."""
    try:
        compose = find_compose()
        prepare(compose.folder)
        watch = connect()
        config = resolved(compose, services)
        check_ports(config, watch)
        watch.close()
    except LoadgenError as error:
        print(f"loadgen: {error}", file=sys.stderr)
        return int(error.exit_code)
    code = up(stack_words(compose), services)
    if code == 0:
        for line in addresses(config):
            print(line)
        print(f"The service's token: {token_file(compose.folder)}")
    return code


def prepare(folder: Path) -> None:
    """Sets what the Compose file leaves to `make up`: whose runs/ it is, and the service's token."""
    # Docker would make it as root's.
    Path(os.environ.setdefault("RUNS", str(folder / "runs"))).mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("LOADGEN_UID", str(os.getuid()))
    os.environ.setdefault("LOADGEN_GID", str(os.getgid()))
    file = token_file(folder)
    if not os.environ.get("LOADGEN_TOKEN"):
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch(mode=0o600)
            file.write_text(secrets.token_hex(16), encoding="utf-8")
        os.environ["LOADGEN_TOKEN"] = file.read_text(encoding="utf-8").strip()


def token_file(folder: Path) -> Path:
    """Where a token lies that was made here; LOADGEN_TOKEN from the environment goes before it."""
    return folder / ".cache" / "service-token"


def stack_words(compose: Compose) -> list[str]:
    """Compose's command for the stack; the project's name is what the file says."""
    files = [word for file in compose.files for word in ("-f", str(file))]
    return [*compose.command, "--project-directory", str(compose.folder), *files]


def resolved(compose: Compose, services: Sequence[str]) -> dict[str, Any]:
    """What Compose makes of the files; UsageError with its own words if it refuses them."""
    answer = subprocess.run(
        [*stack_words(compose), "config", "--format", "json", *services], capture_output=True, text=True, check=False
    )
    if answer.returncode != 0:
        raise UsageError(f"Compose refuses the files: {answer.stderr.strip()}")
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def check_ports(config: dict[str, Any], watch: DockerWatch) -> None:
    """UsageError that names every taken port and its owner; what this very stack holds already does not count."""
    ours = {container.name for container in watch.containers(f"{PROJECT_LABEL}={config['name']}")}
    taken: list[str] = []
    for service, port in published(config):
        container = watch.publisher(port)
        if container not in ours and not is_free(port):
            holder = f"container {container}" if container else port_holder(port)
            taken.append(f"port {port} ({service}) is taken by {holder}")
    if taken:
        raise UsageError(f"Nothing was started: {'; '.join(taken)}. Stop it, or set another port in .env.")


def published(config: dict[str, Any]) -> list[tuple[str, int]]:
    """(service, port of the host) of every service."""
    return [
        (name, int(port["published"]))
        for name, service in config["services"].items()
        for port in service.get("ports") or []
        if port.get("published")
    ]


def up(words: Sequence[str], services: Sequence[str]) -> int:
    """0 once everything is healthy; else the stack is down again."""
    code, text = 1, ""
    try:
        command = [*words, "up", "--detach", "--wait", "--wait-timeout", str(WAIT_S), *services]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        code, text = done.returncode, done.stderr
    except KeyboardInterrupt:
        code = int(ExitCode.INTERRUPTED)
    if code == 0:
        return 0
    if code != ExitCode.INTERRUPTED:
        subprocess.run([*words, "logs", "--no-color", "--tail", "15"], check=False)
        print(f"{text.strip()}\nloadgen: the stack did not come up and is taken down. {cure(text)}", file=sys.stderr)
        code = int(ExitCode.NO_VERDICT)
    subprocess.run([*words, "down", "--remove-orphans", "--volumes"], check=False)
    return code


def addresses(config: dict[str, Any]) -> list[str]:
    """Where each part is to be seen."""
    return [f"{name:12} http://127.0.0.1:{port}" for name, port in published(config)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
