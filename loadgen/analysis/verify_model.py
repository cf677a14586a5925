"""What `loadgen verify` tests and what it finds, as plain facts that go to disk and into every report."""

import math
from dataclasses import dataclass, field
from enum import StrEnum

from loadgen.analysis.capacity_model import Slo
from loadgen.analysis.capacity_model import Verdict as SloVerdict
from loadgen.analysis.schedule import Choice
from loadgen.profiles.model import BatchSchedule
from loadgen.store.model import Condition


class Verdict(StrEnum):
    """What a re-measurement says of a claim."""

    HOLDS = "holds"
    FAILS = "does_not_hold"
    OPEN = "not_resolved"


class Role(StrEnum):
    """What a server of a verification stands for."""

    NONE = "none"
    STATIC = "static"
    SCHEDULE = "schedule"


@dataclass(frozen=True)
class Claim:
    """What is put to the test: at every load the claimed server is no worse than any other one measured."""

    choice: Choice
    profile: str
    condition: Condition
    static_k: int
    schedule: BatchSchedule
    """In requests per step, for the server with the schedule."""
    in_flight: BatchSchedule
    """By requests in flight: the K that is claimed best; for two pools it says which pool serves."""
    edges: tuple[int, ...]
    """Requests in flight at the schedule's edges."""
    arms: dict[Role, str]
    """Which profile of the verification plays which role."""
    objective: str = "throughput"
    setting: str = ""
    value: object = None
    slos: tuple[Slo, ...] = ()
    """The limits within which it is claimed best, at every load but those of `unmet`."""
    unmet: tuple[int, ...] = ()
    """The run's loads at which no setting surely kept the limits."""
    tested: tuple[int, ...] = ()
    """The run's loads."""

    def within(self, concurrency: int) -> bool:
        """True where the claim includes the limits: at the run's loads that were met, and at loads next to those."""
        if not self.slos or not self.tested:
            return False
        nearest = min(self.tested, key=lambda level: abs(math.log(level / concurrency)))
        return nearest not in self.unmet

    def role_at(self, concurrency: int) -> Role:
        """The server that is claimed to be best at this load."""
        if self.choice is Choice.SCHEDULE:
            return Role.SCHEDULE
        if self.choice is Choice.TWO_POOLS:
            k = next((k for _, last, k in self.in_flight if concurrency <= last), self.in_flight[-1][2])
            return Role.STATIC if k else Role.NONE
        return Role.STATIC if self.choice is Choice.STATIC else Role.NONE


@dataclass(frozen=True)
class Comparison:
    """The claimed server beside one other, at one load."""

    place: str
    """`8`, or `open loop across 12`."""
    concurrency: int
    claimed: Role
    other: Role
    ratio: float
    """Above 1: the claimed one is better. By output tokens/s, or by TPOT in the open loop."""
    n: int
    ci90: tuple[float, float] | None
    """90 %: its lower end against the margin is the one-sided 5 % test."""
    p_not_worse: float | None
    """Of "worse by more than the margin", one-sided."""
    p_worse: float | None
    """Of "not worse by more than the margin", one-sided; Holm over all comparisons decides."""
    verdict: Verdict
    standing: str
    """`better`, `equal` (within the margin both ways), `no worse`, `worse`, `open`."""
    more_repeats: int | None = None
    """Where it is open: repeats beyond these that would settle it if mean and spread stayed, up to `MOST_REPEATS`."""
    more_s: float | None = None
    """Windows of this place alone; a verification measures every load and server anew (`Anew`)."""


@dataclass(frozen=True)
class LimitCheck:
    """Whether a server kept the limits at one load, measured again."""

    concurrency: int
    role: Role
    verdict: SloVerdict
    words: str
    """The figures that decide."""
    more_s: float | None = None
    """Seconds of measuring at this load that would tell, where it is unresolved."""


@dataclass(frozen=True)
class StaticGain:
    """The static K beside no speculation at one load, measured again."""

    concurrency: int
    log_ratio: float
    """Mean ln(static / none), paired by prompts."""
    standard_error: float | None
    """Of the mean, its variance moderated over the loads; None for one repeat."""
    n: int


@dataclass(frozen=True)
class Anew:
    """What one more verification of the same advice takes; nothing is known of one that an older version stored."""

    run: str = "latest"
    """As `loadgen verify` takes it: a name, or a path (with a slash)."""
    margin: float = 0.0
    sessions: int = 1
    repeat_s: float = 0.0
    """One repeat of every load and server, server starts left out."""
    open_s: float = 0.0
    """All open loops once."""
    open_length_s: float = 0.0
    quick: bool = False


@dataclass(frozen=True)
class Verification:
    """The whole re-measurement."""

    verdict: Verdict
    claim: Claim
    margin: float
    """As a ratio: 0.02 is 2 %."""
    margin_reason: str
    comparisons: tuple[Comparison, ...]
    sentence: str
    instead: str = ""
    """What to do where the claim does not hold."""
    schedule_note: str = ""
    """How a schedule did that was measured and not claimed."""
    more_s: float | None = None
    """Seconds of the verification that would resolve it, where that is possible."""
    overrides: tuple[str, ...] = ()
    """What vLLM changed of what was asked, and how that was seen."""
    notes: tuple[str, ...] = ()
    indicative: bool = False
    seed: int = 0
    created_at: str = ""
    levels: tuple[int, ...] = field(default=())
    sessions: int = 1
    """Server starts that were planned; repeats count per session."""
    static_gains: tuple[StaticGain, ...] = ()
    """The static K beside no speculation, whatever is claimed: what the answer's words are held to."""
    limits: tuple[LimitCheck, ...] = ()
    """Every server at every load that was measured again; empty without limits."""
    anew: Anew = Anew()
