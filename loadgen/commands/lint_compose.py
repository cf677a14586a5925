"""Faults in a Compose file that runs vLLM, as they were seen in public (cases.md, part E)."""

import re
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path

from loadgen.commands.lint_compose_file import Service, known, option_value, read_compose
from loadgen.commands.lint_compose_gpu import lint_gpu, lint_two_on_one_gpu
from loadgen.commands.lint_finding import Finding

START_PERIOD_S = 600.0
STOP_GRACE_S = 30.0
_SECRET_NAME = re.compile(r"(?:TOKEN|API_KEY|PASSWORD|SECRET)$")
_SECRET = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{20,}|nvapi-[A-Za-z0-9_-]{20,}|gh[pous]_[A-Za-z0-9]{20,})"
)
_LOCAL = re.compile(r"^(?:127\.\d+\.\d+\.\d+|localhost|\[?::1\]?)$")
_CACHE = "/root/.cache/huggingface"


def lint_compose(path: Path) -> list[Finding]:
    """The file's faults; UsageError if it is no Compose file."""
    services = read_compose(path)
    found = [
        finding
        for service in services
        for check in (*_ALL, *(_SERVER if service.is_model_server else ()))
        for finding in check(service, f"{path}: service {service.name}")
    ]
    servers = [service for service in services if service.is_model_server]
    for one, other in combinations(servers, 2):
        found += lint_two_on_one_gpu(one, other, str(path))
    for service in services:
        found += _depends(service, {server.name for server in servers}, f"{path}: service {service.name}")
    return found


def _image(service: Service, where: str) -> Iterator[Finding]:
    image = service.image
    if not image or service.raw.get("build") or "@sha256:" in image:
        return
    _, sign, tag = image.rpartition("/")[2].partition(":")
    if not sign or tag in ("latest", "nightly", "main", "edge", "stable"):
        what = f"image {image} is another one tomorrow, and two measurements cannot be compared"
        yield Finding("unpinned-image", where, what, f"pin a release: {image.removesuffix(':' + tag)}:vX.Y.Z")


def _ports(service: Service, where: str) -> Iterator[Finding]:
    for port in service.ports:
        if not _LOCAL.match(port.host_ip):
            what = f"port {port.published or port.target} is open to every machine that reaches this one"
            cure = f'write "127.0.0.1:{port.published or port.target}:{port.target}"'
            yield Finding("open-port", where, what, cure)


def _secrets(service: Service, where: str) -> Iterator[Finding]:
    for name, value in service.environment.items():
        if (_SECRET_NAME.search(name) and value and "$" not in value) or _SECRET.search(value):
            cure = f"take it from the environment, {name}: ${{{name}:-}}, and make the token anew"
            yield Finding("token-in-file", where, f"{name} stands in the file", cure)
        if name == "HUGGING_FACE_HUB_TOKEN":
            what = "HUGGING_FACE_HUB_TOKEN is the old name"
            yield Finding("old-token-name", where, what, "call it HF_TOKEN", is_error=False)
    for option in ("--api-key", "--hf-token"):
        written = option_value(service.raw_words, option)
        if written and "$" not in written:
            yield Finding("token-in-file", where, f"{option} stands in the file", "take it from the environment")


def _restart(service: Service, where: str) -> Iterator[Finding]:
    policy = known(service.raw.get("restart", ""))
    if policy in ("always", "unless-stopped", "on-failure"):
        what = f"restart: {policy} starts a server that dies for want of memory again and again, until the host dies"
        yield Finding("restart-loop", where, what, 'write restart: "no"')


def _start(service: Service, where: str) -> Iterator[Finding]:
    check = service.raw.get("healthcheck")
    if not isinstance(check, dict) or check.get("disable"):
        yield Finding("no-healthcheck", where, "nobody can tell when it is ready", "add a healthcheck", is_error=False)
        return
    period = compose_duration_s(known(check.get("start_period", "0s")))
    if period is not None and period < START_PERIOD_S:
        what = f"start_period {check.get('start_period', 'unset')}: loading a model takes many minutes"
        yield Finding("short-start-period", where, what, "set start_period to 600s or more")


def _memory(service: Service, where: str) -> Iterator[Finding]:
    size = _bytes(known(service.raw.get("shm_size", "")))
    if known(service.raw.get("ipc", "")) == "host" or (size is not None and size >= 8 * 2**30):
        return
    parallel = service.option("--tensor-parallel-size", "-tp") or "1"
    what = "shared memory is Docker's 64 MB, and the workers of one server exchange tensors through it"
    yield Finding("shared-memory", where, what, "write ipc: host, or shm_size: 8g", is_error=parallel != "1")


def _cache(service: Service, where: str) -> Iterator[Finding]:
    homes = [known(service.environment.get(name, "")) for name in ("HF_HUB_CACHE", "HF_HOME")]
    places = [home for home in homes if home] or [_CACHE]
    if any(place == at or place.startswith(at.rstrip("/") + "/") for place in places for at in service.mounts):
        return
    if any(at == "/root/.cache" for at in service.mounts) or _is_local_model(service):
        return
    elsewhere = [at for at in service.mounts if re.search(r"data|cache|model|hugging", at)]
    what = f"models are kept in {places[0]}, and "
    what += f"{elsewhere[0]} is mounted instead" if elsewhere else "nothing is mounted there"
    yield Finding("cache-place", where, f"{what}: each start downloads again", f"mount the cache at {places[0]}")


def _is_local_model(service: Service) -> bool:
    model = service.option("--model") or next((word for word in service.words if word.startswith("/")), "")
    return any(model.startswith(at) for at in service.mounts if at not in ("", "/"))


def _listen_port(service: Service, where: str) -> Iterator[Finding]:
    listens = service.option("--port") or "8000"
    for port in service.ports:
        if port.target.isdecimal() and port.target != listens:
            what = f"port {port.target} is published and the server listens on {listens}"
            yield Finding("container-port", where, what, f"write …:{listens}")


def _stop(service: Service, where: str) -> Iterator[Finding]:
    grace = compose_duration_s(known(service.raw.get("stop_grace_period", "10s")))
    if grace is not None and grace < STOP_GRACE_S:
        what = f"it is killed after {service.raw.get('stop_grace_period', '10s')}, and its workers may stay behind"
        yield Finding("stop-grace", where, what, "set stop_grace_period to 60s", is_error=False)
    if service.raw.get("init") is not True:
        what = "no init reaps its workers"
        yield Finding("no-init", where, what, "write init: true", is_error=False)
    words = service.words
    shell = len(words) > 1 and words[0].rpartition("/")[2] in ("sh", "bash") and words[1].endswith("c")
    if shell and "exec " not in " ".join(words):
        yield Finding("shell-form", where, "a shell swallows the stop signal", "start vLLM itself, or with exec")


def _depends(service: Service, servers: set[str], where: str) -> Iterator[Finding]:
    wanted = service.raw.get("depends_on") or {}
    for name in wanted:
        condition = wanted[name].get("condition") if isinstance(wanted, dict) and wanted[name] else None
        if name in servers and condition != "service_healthy":
            what = f"it starts when {name} has been started, minutes before that can serve"
            cure = f"write depends_on: {{{name}: {{condition: service_healthy}}}}"
            yield Finding("started-not-ready", where, what, cure)


def compose_duration_s(text: str) -> float | None:
    """Seconds of a Compose duration such as `1m30s`; None if it is not known."""
    units = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
    parts = re.findall(r"(\d+(?:\.\d+)?)(us|ms|s|m|h)", text)
    if not parts or "".join(n + u for n, u in parts) != text:
        return None
    return sum(float(number) * units[unit] for number, unit in parts)


def _bytes(text: str) -> float | None:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmg]?)i?b?\s*", text.lower())
    return float(match[1]) * {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}[match[2]] if match else None


_Check = Callable[[Service, str], Iterator[Finding]]
_ALL: tuple[_Check, ...] = (_image, _ports, _secrets)
_SERVER: tuple[_Check, ...] = (_restart, _start, _memory, _cache, _listen_port, _stop, lint_gpu)
