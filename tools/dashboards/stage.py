"""A small live stack without containers: two simulated servers, loadgen's exporter and a Prometheus with our rules."""

import contextlib
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from loadgen.engines.ports import free_port
from tools.dashboards.ask import Prometheus

ROOT = Path(__file__).resolve().parents[2]
LOADGEN = (sys.executable, "-m", "loadgen")
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Stage:
    """Where everything listens."""

    prometheus: str
    servers: dict[str, str]
    """Profile → URL."""
    runs: Path

    def sweep(self, *words: str) -> subprocess.Popen[bytes]:
        """A sweep against the servers, started; its output goes to sweep.log beside the runs."""
        urls = ",".join(f"{profile}={url}" for profile, url in self.servers.items())
        command = [*LOADGEN, "sweep", "--engine", "url", "--url", urls, "--runs", str(self.runs), *words]
        with (self.runs.parent / "sweep.log").open("ab") as log:
            return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)

    def ask(self, path: str, **parameters: object) -> Any:
        """The `data` of an answer of Prometheus' HTTP API."""
        return Prometheus(self.prometheus).ask(path, **parameters)


@contextlib.contextmanager
def stage(folder: Path, runs: Path, hardware: str = "") -> Iterator[Stage]:
    """The stack, up; everything is down again after it. RuntimeError if a part does not come up."""
    if shutil.which("prometheus") is None:
        raise RuntimeError("Prometheus is missing; install Debian's package prometheus.")
    with contextlib.ExitStack() as stack:
        servers = {}
        for profile in ("baseline", "ngram"):
            port = free_port()
            words = ["simulate", "--config", f"server_profiles/{profile}.yaml", "--port", str(port)]
            _start(
                stack, folder / f"{profile}.log", [*LOADGEN, *words, *(["--hardware", hardware] if hardware else [])]
            )
            servers[profile] = f"http://127.0.0.1:{port}"
        exporter = free_port()
        _start(stack, folder / "exporter.log", [*LOADGEN, "exporter", "--runs", str(runs), "--port", str(exporter)])
        prometheus = free_port()
        config = _config(folder, servers, exporter)
        words = [
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'tsdb'}",
            "--web.enable-remote-write-receiver",
        ]
        words.append(f"--web.listen-address=127.0.0.1:{prometheus}")
        _start(stack, folder / "prometheus.log", ["prometheus", *words])
        for url in (*(f"{url}/health" for url in servers.values()), f"http://127.0.0.1:{exporter}/metrics"):
            _wait(url)
        _wait(f"http://127.0.0.1:{prometheus}/-/ready")
        yield Stage(f"http://127.0.0.1:{prometheus}", servers, runs)


def _config(folder: Path, servers: dict[str, str], exporter: int) -> Path:
    """Our own prometheus.yml with the targets replaced: here they lie on this machine."""
    config = yaml.safe_load((ROOT / "dashboards" / "prometheus.yml").read_text(encoding="utf-8"))
    config["rule_files"] = [str(ROOT / "dashboards" / pattern) for pattern in config["rule_files"]]
    # Named by what they run, where Compose's network gives addresses.
    named = [
        {"targets": [url.removeprefix("http://")], "labels": {"instance": profile}} for profile, url in servers.items()
    ]
    config["scrape_configs"] = [
        {"job_name": "vllm", "static_configs": named},
        {"job_name": "loadgen", "static_configs": [{"targets": [f"127.0.0.1:{exporter}"]}]},
    ]
    path = folder / "prometheus.yml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def _start(stack: contextlib.ExitStack, log: Path, command: list[str]) -> None:
    with log.open("ab") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output)

    def stop() -> None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    stack.callback(stop)


def _wait(url: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError as error:
            if time.monotonic() > until:
                raise RuntimeError(f"{url} does not answer: {error}") from error
            time.sleep(0.1)
