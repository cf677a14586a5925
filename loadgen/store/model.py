"""What stands in a run folder: the cell, and the run's manifest."""

from dataclasses import dataclass, field
from typing import Any

from loadgen.load.shape import ClientHealth
from loadgen.load.summary import Distribution
from loadgen.metrics.model import CounterDelta, GaugeSummary

SCHEMA = 1
"""Of manifest.json."""


@dataclass(frozen=True, order=True)
class Condition:
    """Workload × input length × temperature."""

    workload: str
    input_tokens: int
    temperature: float


@dataclass(frozen=True, order=True)
class CellKey:
    """Names a cell: the unit that is measured, stored and resumed."""

    profile: str
    condition: Condition
    level: int
    repeat: int
    session: int = 0

    def __str__(self) -> str:
        c = self.condition
        where = f"{c.workload}/{c.input_tokens}/t{c.temperature:g}"
        return f"{self.profile}/{where}/L{self.level}/r{self.repeat}/s{self.session}"


@dataclass(frozen=True)
class CellResult:
    """One measured cell: facts only; whether they are valid is the analysis' word."""

    key: CellKey
    order: int
    """Position in the run: 0 was measured first."""
    started_at: str
    window_s: float
    output_tokens_per_s: float
    """From the window, straddling requests prorated."""
    requests_per_s: float
    outcomes: dict[str, int]
    ttft_s: Distribution
    tpot_s: Distribution
    e2e_s: Distribution
    chunk_gap_s: Distribution
    output_tokens: Distribution
    prompt_tokens: Distribution
    client: ClientHealth
    window: CounterDelta | None
    """Server counters from window open to window close."""
    idle: CounterDelta | None
    """Server counters from idle before to idle after: for sums against the client's."""
    gauges: GaugeSummary
    client_tokens_total: int
    """Output tokens of all requests of the cell, failed and cancelled ones included as far as known."""
    token_sources: dict[str, int] = field(default_factory=dict)
    repeated_ngram_share: float | None = None
    half_second_tokens: tuple[float, ...] = ()
    """Client tokens per half second of the window: shows slow phases."""
    steal_share: float | None = None
    """Share of CPU time that the hypervisor took away in the window, from /proc/stat."""
    prompts_sha256: str = ""
    server_start: int = 0
    """Which start of this profile's server: cells of one start share its luck."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class ServerFacts:
    """One started server, for the manifest."""

    profile: str
    session: int
    url: str
    model: str
    version: str | None
    start_s: float
    command: tuple[str, ...]
    effective: dict[str, Any]
    max_model_len: int | None = None


@dataclass(frozen=True)
class Manifest:
    """What was asked and on what it ran."""

    run_id: str
    created_at: str
    loadgen_version: str
    argv: tuple[str, ...]
    engine: str
    engine_reason: str
    simulated: bool
    profiles: tuple[str, ...]
    """All profiles; `against` is one of them."""
    against: str
    methods: dict[str, str]
    """Profile name → speculative method."""
    num_speculative_tokens: dict[str, int]
    """Profile name → K; absent for profiles without speculation."""
    conditions: tuple[Condition, ...]
    levels: tuple[int, ...]
    repeats: int
    sessions: int
    seed: int
    quick: bool
    order: str
    """`blocks`, `alternate` or `together`."""
    sampling: dict[str, Any]
    hardware: dict[str, Any]
    """This machine and, for the simulator, its preset's name."""
    settings: dict[str, Any] = field(default_factory=dict)
    schema: int = SCHEMA
