"""Capacity planning as plain facts: objectives, demand, what each setting carries, and what that costs."""

from dataclasses import dataclass, field
from enum import StrEnum

from loadgen.store.model import Condition

METRICS = ("ttft", "tpot", "e2e")
SCHEDULE_NAME = "schedule"


@dataclass(frozen=True)
class Slo:
    """One objective: this quantile of this metric is at most `limit_s`."""

    metric: str
    """`ttft`, `tpot` or `e2e`."""
    quantile: float
    """0.99 for p99."""
    limit_s: float

    @property
    def name(self) -> str:
        """`ttft_p99`."""
        return f"{self.metric}_p{100 * self.quantile:g}"


class Verdict(StrEnum):
    """Whether an objective holds."""

    MET = "met"
    MISSED = "missed"
    UNRESOLVED = "unresolved"
    """The interval holds the limit, or the sample is too small to have one."""


@dataclass(frozen=True)
class QuantileEstimate:
    """A quantile with its 95 % binomial order-statistic interval; infinite where that many requests failed."""

    value: float
    n: int
    low: float | None
    high: float | None
    """None: the sample is too small to bound the quantile on this side."""
    needed: int
    """Requests from which on the quantile is bounded above."""


@dataclass(frozen=True)
class SloFinding:
    """One objective at one load."""

    slo: Slo
    estimate: QuantileEstimate
    verdict: Verdict


@dataclass(frozen=True)
class RequestTimes:
    """One request in seconds; infinite where it failed, `tpot_s` None where it has one token only."""

    ttft_s: float
    tpot_s: float | None
    e2e_s: float


@dataclass(frozen=True)
class LoadPoint:
    """One setting at one closed-loop level, valid cells pooled."""

    level: int
    requests_per_s: float
    tokens_per_s: float
    begun: tuple[float, ...] = field(repr=False)
    """TTFT of each request whose first token fell into a window."""
    ended: tuple[RequestTimes, ...] = field(repr=False)
    """Each request that ended in a window."""
    tokens_per_step: float | None = None
    source: str = ""
    """The profile whose cells these are."""


@dataclass(frozen=True)
class OpenPoint:
    """One setting at one open-loop rate; times from the scheduled start, so that no wait is left out."""

    rate_per_s: float
    requests_per_s: float
    """Reached."""
    tokens_per_s: float
    in_flight: float
    times: tuple[RequestTimes, ...] = field(repr=False)


@dataclass(frozen=True)
class Demand:
    """What is asked of the whole service. Either a rate, or users with their think time."""

    rate_per_s: float | None = None
    users: int | None = None
    think_s: float = 0.0
    source: str = ""
    """Where a rate comes from, if not from the command line: a trace's peak."""
    shares: tuple[tuple[str, float], ...] = ()
    """Workload → its share of the demand; empty without a mix."""


@dataclass(frozen=True)
class Hardware:
    """What a server is made of and costs."""

    gpus_per_server: int = 1
    headroom: float = 0.2
    """0.2: plan for 1.2 times the demand."""
    spares: int = 1
    """Servers that may fail without the rest missing its objectives (N+1)."""
    gpu_hour: float | None = None
    gpu_watts: float | None = None


@dataclass(frozen=True)
class LevelVerdict:
    """One setting at one closed-loop level."""

    level: int
    requests_per_s: float
    tokens_per_s: float
    goodput_per_s: float
    """Requests/s that meet every limit at once."""
    good_share: float
    findings: tuple[SloFinding, ...]
    verdict: Verdict
    source: str


@dataclass(frozen=True)
class OpenVerdict:
    """One setting at one measured open-loop rate."""

    rate_per_s: float
    requests_per_s: float
    in_flight: float
    goodput_per_s: float
    findings: tuple[SloFinding, ...]
    verdict: Verdict


@dataclass(frozen=True)
class Ceiling:
    """The highest measured load that meets the objectives; every lower one meets them too."""

    surely: float | None
    """By the whole interval; None if no load does so surely."""
    by_estimate: float | None
    """By the estimates themselves."""
    top: float
    """The highest measured load."""

    @property
    def open_ended(self) -> bool:
        """The top load still meets them: nothing is said of higher ones."""
        return self.by_estimate == self.top


@dataclass(frozen=True)
class OperatingPoint:
    """One server under a demand, as the queueing estimate sees it."""

    rate_per_s: float
    users: float | None
    in_flight: float
    tokens_per_s: float
    beyond_share: float
    """Share of requests that would meet more company than was measured; they count as misses."""
    quantiles: tuple[SloFinding, ...]


@dataclass(frozen=True)
class Capacity:
    """What one server carries."""

    per_server: float | None
    """Requests/s, or users; None if no load meets the objectives."""
    unit: str
    """`requests/s` or `users`."""
    basis: str
    """`open-loop` (measured) or `closed-loop estimate`."""
    limited_by: str
    """`objectives`, or `measured levels`: higher levels were not measured and may meet them too."""
    at: OperatingPoint | None
    surely: float | None = None
    """So much by the whole interval of every objective; None: not even a small load is resolved."""
    at_most: float | None = None
    """No more than this by the intervals; None: more may be carried than was measured."""


@dataclass(frozen=True)
class Fleet:
    """Servers for a demand."""

    servers: int
    """Enough for the demand alone."""
    with_headroom: int
    with_spares: int
    gpus: int
    per_gpu: float
    """Requests/s or users per GPU of the whole fleet."""
    tokens_per_s: float | None = None
    """Output of the whole fleet under the demand."""
    cost_per_million_tokens: float | None = None
    kwh_per_million_tokens: float | None = None
    gpus_least: int | None = None
    """By what a server carries at most; None without the intervals."""
    gpus_most: int | None = None
    """By what a server surely carries; None: no number of GPUs is sure."""
    gpus_if_less: int | None = None
    """By 5 % less per server, about what the estimate itself is off: a number near a step is not sharp."""


@dataclass(frozen=True)
class Offer:
    """One setting under one condition."""

    condition: Condition
    setting: str
    """A profile's name, or `schedule`."""
    detail: str
    levels: tuple[LevelVerdict, ...]
    ceiling: Ceiling
    opened: tuple[OpenVerdict, ...]
    capacity: Capacity | None
    fleet: Fleet | None
    weaker: "Weaker | None"
    """The same with acceptance a third lower; None where nothing is drafted."""


@dataclass(frozen=True)
class Weaker:
    """A setting if a third fewer drafts were accepted."""

    tokens_per_step_factor: float
    ceiling: Ceiling
    capacity: Capacity | None
    fleet: Fleet | None


@dataclass(frozen=True)
class Advice:
    """The setting for one workload, and why."""

    condition: Condition
    setting: str | None
    reason: str
    sure: bool = True
    """Whether the intervals say so, too; else the figures are estimates only."""
    doubt: str = ""
    """What is unresolved and what would resolve it; empty where it is sure."""


@dataclass(frozen=True)
class Pool:
    """Servers with one setting, and what they serve."""

    setting: str
    workloads: tuple[str, ...]
    share: float
    per_server: float
    fleet: Fleet
    open_ended: bool = False
    """More than was measured may be carried, so that the GPUs are an upper bound."""


@dataclass(frozen=True)
class MixPlan:
    """A mix of workloads in pools."""

    pools: tuple[Pool, ...]
    gpus: int
    single: tuple[Pool, ...]
    """One pool for all, by setting, fewest GPUs first; settings that miss an objective are left out."""
    sentence: str
    sure: bool = True


@dataclass(frozen=True)
class Plan:
    """The whole answer."""

    run_id: str
    simulated: bool
    model: str | None
    vllm_version: str | None
    slos: tuple[Slo, ...]
    demand: Demand | None
    hardware: Hardware
    offers: tuple[Offer, ...]
    advice: tuple[Advice, ...]
    mix: MixPlan | None
    answer: str
    notes: tuple[str, ...] = ()
