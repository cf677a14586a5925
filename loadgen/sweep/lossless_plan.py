"""What a same-quality test asks of its servers, and what it needs of whoever brings them up."""

from dataclasses import dataclass, field
from typing import Protocol

from loadgen.analysis.lossless_model import Drafted
from loadgen.analysis.lossless_sampling import MARGIN
from loadgen.sweep.lossless_client import Answer, Ask, LosslessServer
from loadgen.sweep.lossless_seeds import Seeding
from loadgen.workloads.base import Prompt

WIDE = 32
"""The busy arm: another batch, other rounding."""
SAMPLING_CONCURRENCY = 64


@dataclass(frozen=True)
class LosslessPlan:
    """What is tested, and how hard."""

    profile: str
    against: str
    k: int
    """The profile's num_speculative_tokens."""
    kind: str = "16-bit"
    """Of `analysis.lossless_greedy.TOLERANCES`."""
    temperatures: tuple[float, ...] = (0.8,)
    """Those above 0; the greedy part always runs."""
    samples: int = 1500
    prefixes: int = 4
    margin: float = MARGIN
    wide: int = WIDE
    concurrency: int = SAMPLING_CONCURRENCY
    """Requests in flight while sampling; the control runs at a quarter of it."""
    seed: int = 1
    seeds: Seeding = field(default_factory=lambda: Seeding(True, ""))
    """Whether each sample is sent with a seed of its own."""


class Servers(Protocol):
    """Brings a profile's server up when it is needed; that may cost the other one."""

    async def use(self, name: str) -> LosslessServer:
        """The server of that profile, ready."""


class WhenNeeded:
    """A profile's server that is brought up by its first question: what a journal answers needs none."""

    def __init__(self, servers: Servers, name: str) -> None:
        self._servers = servers
        self._name = name

    async def tokenize(self, prompt: Prompt) -> tuple[int, ...]:
        """The prompt's token ids."""
        return await (await self._servers.use(self._name)).tokenize(prompt)

    async def answer(self, ask: Ask) -> Answer:
        """One completion."""
        return await (await self._servers.use(self._name)).answer(ask)

    async def mark(self) -> None:
        """From here on counts `since_mark`."""
        await (await self._servers.use(self._name)).mark()

    async def since_mark(self) -> Drafted:
        """What the speculative counters did since the mark."""
        return await (await self._servers.use(self._name)).since_mark()
