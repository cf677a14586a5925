"""Where load goes and how a request is formed."""

import os
from dataclasses import dataclass, field

from loadgen.workloads.base import Sampling


@dataclass(frozen=True)
class Timeouts:
    """Limits in seconds; None means no limit. Below the first token the default waits for ever (long prefill)."""

    connect_s: float | None = 10.0
    first_byte_s: float | None = None
    idle_s: float | None = 300.0
    """Longest silence after the first byte; any bytes, comments too, reset it."""
    total_s: float | None = None


@dataclass(frozen=True)
class Target:
    """A server and how its requests look."""

    url: str
    """Base URL without `/v1`."""
    model: str
    sampling: Sampling = field(default_factory=Sampling)
    timeouts: Timeouts = field(default_factory=Timeouts)
    continuous_usage: bool = False
    """Ask for usage in every chunk: tokens per chunk for diagnosis; it costs the server, so never in verdict cells."""
    return_token_ids: bool = False
    keep_text: bool = False
    verify_tls: bool = True
    ca_file: str | None = None
    use_proxy_environment: bool = False
    api_key_variable: str = "OPENAI_API_KEY"
    """Name of the environment variable that holds the bearer token; its value is never stored."""


def bearer(target: Target) -> dict[str, str]:
    """The Authorization header with the token from the environment; empty without one."""
    token = os.environ.get(target.api_key_variable)
    return {"Authorization": f"Bearer {token}"} if token else {}
