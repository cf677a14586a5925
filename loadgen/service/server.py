"""uvicorn around the application: one socket, one runs folder, an end that stops what was started."""

import fcntl
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from loadgen.errors import UsageError
from loadgen.service.app import create_app
from loadgen.service.settings import Settings


def run(settings: Settings, host: str, port: int, tell: Callable[[str], None]) -> None:
    """Serves until SIGINT or SIGTERM; then running sweeps are stopped and wait for the next service."""
    with only_one(settings.runs), _listening(host, port) as listener:
        shown, number = listener.getsockname()[:2]
        address = f"[{shown}]" if ":" in shown else shown
        tell(f"loadgen serves http://{address}:{number}/ (runs: {settings.runs}); Ctrl-C stops it.")
        server = make_server(settings)
        server.run(sockets=[listener])


def make_server(settings: Settings) -> uvicorn.Server:
    """The server, ready to run on a socket."""
    server: uvicorn.Server | None = None

    def stopping() -> bool:
        return server is not None and server.should_exit

    config = uvicorn.Config(
        create_app(settings, stopping),
        # Requests stand in no log: they say nothing that the run folders do not, and a log could keep a secret.
        access_log=False,
        log_level="warning",
        server_header=False,
        # Whoever is in front of us may say what it wants; the address of the client decides nothing here.
        proxy_headers=False,
        ws="none",
        limit_concurrency=256,
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
    return server


@contextmanager
def only_one(runs: Path) -> Iterator[None]:
    """Holds the runs folder: two queues on it would measure at once. UsageError if another service has it."""
    try:
        runs.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(runs / ".service.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise UsageError(f"{runs} cannot be written ({error.strerror}); choose another folder with --runs.") from error
    try:
        _hold(descriptor, runs)
        yield
    finally:
        os.close(descriptor)


def _hold(descriptor: int, runs: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(f"Another `loadgen serve` works on {runs}; stop it, or choose another folder.") from None


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind)
    except (OSError, UnicodeError) as error:
        # UnicodeError: a label longer than names allow.
        cause = getattr(error, "strerror", None) or "no host name"
        raise UsageError(f"--host {host} is no address of this machine ({cause}); try 127.0.0.1.") from error
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
        except OSError as error:
            raise UsageError(f"{host}:{port} cannot be used ({error.strerror}); choose another --port.") from error
        listener.listen(128)
        yield listener
