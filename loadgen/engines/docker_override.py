"""The small Compose file that the docker engine lays over the user's own for one server."""

import json
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from loadgen.engines.docker_compose import SERVICE

PREFIX = "LOADGEN_SERVER_"
"""Before the names of the server's own variables, so that none of them reaches Compose itself."""


@dataclass(frozen=True)
class Override:
    """What a run adds. It holds names of variables and never their values, so it may lie in the run folder."""

    variables: tuple[str, ...] = ()
    network: str | None = None
    """The running stack's, so that its Prometheus scrapes this server too."""
    model_folder: Path | None = None
    gpu_ids: tuple[str, ...] = ()

    def text(self) -> str:
        """The YAML; its values are JSON, which YAML takes."""
        lines = ["# Written by loadgen: what this run adds to docker-compose.yml.", "services:", f"  {SERVICE}:"]
        environment = {name: f"${{{PREFIX}{name}}}" for name in self.variables}
        lines.append(f"    environment: {json.dumps(environment)}")
        if self.model_folder:
            place = str(self.model_folder)
            mount = {"type": "bind", "source": place, "target": place, "read_only": True}
            lines.append(f"    volumes: {json.dumps([mount])}")
        if self.gpu_ids:
            device = {"driver": "nvidia", "device_ids": list(self.gpu_ids), "capabilities": ["gpu"]}
            lines.append(f"    deploy: {{resources: {{reservations: {{devices: !override {json.dumps([device])}}}}}}}")
        if self.network:
            lines.append('    networks: {"default": {}, "stack": {}}')
            lines += ["networks:", f"  stack: {json.dumps({'name': self.network, 'external': True})}"]
        return "\n".join(lines) + "\n"


def project_name(log_path: Path, profile: str) -> str:
    """A Compose project's name that is unique to this start, and tells its run and profile."""
    run = log_path.absolute().parent.parent.name
    plain = re.sub(r"[^a-z0-9_-]+", "-", f"{run}-{profile}".lower()).strip("-_")
    return f"loadgen-{plain[-80:].strip('-_')}-{secrets.token_hex(3)}"


def local_folder(model: str | None) -> Path | None:
    """The absolute path of a model that is a folder here (to be mounted); None for a name."""
    if not model or not Path(model).is_dir():
        return None
    return Path(model).absolute()
