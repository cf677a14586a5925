"""What a service is started with."""

import ipaddress
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path

from loadgen.errors import UsageError

MIN_TOKEN = 16
SWEEP = (sys.executable, "-m", "loadgen", "sweep")
PLAN = (sys.executable, "-m", "loadgen", "plan")


@dataclass(frozen=True)
class Settings:
    """Checked settings; `token` never appears in a log, a page or a child's environment."""

    runs: Path
    token: str | None = field(default=None, repr=False)
    hosts: frozenset[str] = frozenset()
    """Names, beside localhost and IP addresses, under which this service may be asked."""
    servers: tuple[str, ...] = ()
    """Running servers that a sweep may load; no other address is taken from the web."""
    profiles: Path | None = None
    """The folder of profiles; None takes the one of `loadgen sweep`."""
    open_metrics: bool = False
    """`/metrics` without the token, for a Prometheus in the same closed network."""
    max_queue: int = 50
    max_body_bytes: int = 64 * 1024
    sweep: tuple[str, ...] = SWEEP
    """The command that carries a run out; tests put a harmless one here."""
    plan: tuple[str, ...] = PLAN
    stop_s: float = 30.0
    """How long an interrupted sweep may take to stop its servers and write its report; with the second SIGINT's time
    it stays under the minute that the Compose file gives."""


def is_loopback(host: str) -> bool:
    """True if only this machine can reach the address; UsageError if it is none."""
    try:
        found = {info[4][0] for info in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError) as error:
        # UnicodeError: a label longer than names allow.
        cause = getattr(error, "strerror", None) or "no host name"
        raise UsageError(f"--host {host} is no address of this machine ({cause}); try 127.0.0.1.") from error
    return all(ipaddress.ip_address(str(address).partition("%")[0]).is_loopback for address in found)


def check_token(host: str, token: str | None) -> str | None:
    """The token, None if there is none and none is needed. UsageError where one is needed."""
    token = (token or "").strip() or None
    if token is None:
        if is_loopback(host):
            return None
        raise UsageError(
            f"Others can reach {host}: set LOADGEN_TOKEN to a secret of {MIN_TOKEN} characters or more "
            "(openssl rand -hex 16 makes one), or listen on 127.0.0.1."
        )
    if len(token) < MIN_TOKEN or not token.isascii() or not token.isprintable():
        raise UsageError(f"LOADGEN_TOKEN must be {MIN_TOKEN} or more printable ASCII characters: openssl rand -hex 16.")
    return token
