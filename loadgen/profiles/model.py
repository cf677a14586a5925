"""What a server profile is, as plain facts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BatchSchedule = tuple[tuple[int, int, int], ...]
"""`num_speculative_tokens_per_batch_size`: (first batch, last batch, K), inclusive, sorted, the first at 1."""


@dataclass(frozen=True)
class SpeculativeConfig:
    """The `speculative-config` of one profile, validated; `raw` is what vLLM gets, key for key."""

    method: str
    num_speculative_tokens: int
    raw: Mapping[str, Any]
    schedule: BatchSchedule | None = None
    draft_model: str | None = None
    synthetic_acceptance_rates: tuple[float, ...] | None = None

    @property
    def is_cost_probe(self) -> bool:
        """True if every draft is rejected on purpose: full cost, no acceptance."""
        rates = self.synthetic_acceptance_rates
        return rates is not None and not any(rates)


@dataclass(frozen=True)
class ServerProfile:
    """One server configuration: a vLLM config file, read and checked."""

    name: str
    settings: Mapping[str, Any]
    """Every key of the YAML file as it stands there (dashes kept), `speculative-config` included."""
    speculative: SpeculativeConfig | None = None
    required_model: str | None = None
    """The target model that this profile's draft belongs to; None if any model goes."""
    path: Path | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def method(self) -> str:
        """The speculative method, `none` for a profile without speculation."""
        return self.speculative.method if self.speculative else "none"
