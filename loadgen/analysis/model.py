"""Findings: what an analysis says, as plain facts that every report reads."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from loadgen.store.model import Condition

if TYPE_CHECKING:  # They are made of what stands here.
    from loadgen.analysis.diagnostic import DiagnosticFinding
    from loadgen.analysis.schedule_ladder import LadderFinding
    from loadgen.analysis.verify_model import Verification


@dataclass(frozen=True)
class Estimate:
    """A number with its n and its 95 % interval (None below n = 3)."""

    value: float
    n: int
    ci95: tuple[float, float] | None = None


@dataclass(frozen=True)
class Check:
    """One trust check on one cell or level."""

    name: str
    """Short and stable: `client-bound`, `prefix-cache`, `reset-counters`, …"""
    voids: bool
    """True: the cell is kept out of verdicts."""
    cause: str
    cure: str


@dataclass(frozen=True)
class Explanation:
    """Why a level gains or loses. The parts of ln speed-up add up to `log_speedup` exactly (docs/method.md, part 5)."""

    log_speedup: float
    """ln of the client's speed-up in output tokens/s, over the pooled valid pairs."""
    acceptance: float
    """ln(1 + accepted / drafts): what acceptance would give if every step had a draft."""
    coverage: float
    """What steps without a draft take away from that (at most 0, but for counter bias)."""
    step_rate: float
    """ln ratio of engine steps per second: the cost of drafting and verifying."""
    batch: float
    """ln ratio of requests decoded per step."""
    first_tokens: float
    """ln ratio of all tokens to decoded ones: requests' first tokens come from prefill."""
    residual: float
    """Client's ratio against the server's: window edges and delivery."""
    step_time_s: float
    baseline_step_time_s: float
    break_even_tokens_per_step: float
    """Tokens per step at which this level would break even, all else equal: L*."""
    naive_speedup: float
    """Tokens per step / the step-time ratio of the lowest level: what low load would promise here."""
    regime: str
    """`memory-bound`, `between`, `compute-bound`, or `unknown`."""
    sentence: str


@dataclass(frozen=True)
class LevelFinding:
    """One profile at one level, against the baseline."""

    concurrency: int
    n: int
    """Valid pairs."""
    valid: bool
    speedup: Estimate | None
    """Ratio of output tokens/s, profile / baseline."""
    tpot_speedup: Estimate | None
    """Ratio of mean TPOT, baseline / profile: above 1 is faster per user."""
    e2e_speedup: Estimate | None
    ttft_ratio: Estimate | None
    """Ratio of median TTFT, profile / baseline: above 1 is a penalty."""
    tokens_per_s: Estimate | None
    baseline_tokens_per_s: Estimate | None
    batch: float | None
    baseline_batch: float | None
    acceptance_rate: float | None
    mean_acceptance_length: float | None
    acceptance_per_position: tuple[float, ...]
    tokens_per_step: float | None
    draft_coverage: float | None
    step_time_ratio: float | None
    """Engine step time, profile / baseline."""
    ttft_p50_s: float | None
    tpot_p50_s: float | None
    e2e_p50_s: float | None
    baseline_ttft_p50_s: float | None
    baseline_tpot_p50_s: float | None
    checks: tuple[Check, ...] = ()
    voided_cells: int = 0
    """This profile's own cells that a check voids; `voided_baseline_cells` are its partners'."""
    voided_baseline_cells: int = 0
    drafts: float | None = None
    accepted_tokens: float | None = None
    draft_tokens: float | None = None
    explanation: Explanation | None = None


class BreakEvenStatus(StrEnum):
    """What can be said of a break-even."""

    FOUND = "found"
    PAYS_THROUGHOUT = "pays_throughout"
    NEVER_PAYS = "never_pays"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Crossing:
    """A level where the speed-up passes 1.0."""

    concurrency: float
    ci95: tuple[float, float]
    level_below: int
    level_above: int
    direction: str
    """`down`: pays below, costs above."""
    kind: str = "bracket"
    """How `ci95` was made. `bracket`: from sure gain to sure loss, whatever lies between. `curve`: 95 % by a smooth
    curve through the levels around it, rounded to whole requests."""
    exact: float | None = None
    """By a curve: where it passes 1.0, a real number of requests."""
    exact_ci95: tuple[float, float] | None = None
    """By a curve: the interval of `exact`, within the bracket."""


@dataclass(frozen=True)
class BreakEven:
    """Where speculation turns, by one measure."""

    status: BreakEvenStatus
    crossings: tuple[Crossing, ...]
    sentence: str
    """One sentence for a person."""
    indicative: bool = False
    """True if the interval cannot be trusted as 95 % (n < 3, or a quick run)."""
    tested_levels: tuple[int, ...] = ()
    sure_gains: tuple[int, ...] = ()
    """Levels where speculation surely pays (family-wise 95 %, or by the indicative rule)."""
    sure_losses: tuple[int, ...] = ()
    wanted: tuple[tuple[int, int], ...] = ()
    """(level, more repeats of it) that would settle an inconclusive verdict; 0 for a level that was not measured."""


@dataclass(frozen=True)
class ProfileFinding:
    """One profile under one condition."""

    profile: str
    method: str
    levels: tuple[LevelFinding, ...]
    break_even: dict[str, BreakEven]
    """By measure: `output_tokens_per_s`, `tpot`."""


@dataclass(frozen=True)
class ConditionFinding:
    """All profiles under one condition."""

    condition: Condition
    profiles: tuple[ProfileFinding, ...]


@dataclass(frozen=True)
class ScheduleEdges:
    """Where a recommended schedule changes its K, on both axes."""

    profile: str
    condition: Condition
    places: tuple[tuple[int, int], ...]
    """(last requests per engine step, last requests in flight) before each change."""


@dataclass(frozen=True)
class Recommendation:
    """What to set, for which load, and how sure that is."""

    setting: str
    value: object
    holds_for: str
    verified: bool | None
    why: str
    edges: ScheduleEdges | None = None
    """Of a schedule that is to be set; None for any other advice."""
    candidate: bool = False
    """A schedule that no server ran yet: what a schedule itself costs is not in it."""
    when: str = ""
    """`if fewer than 16 requests run at once`; empty where it holds at every load of `holds_for`."""
    beyond: str = ""
    """What to do at the other loads."""


@dataclass(frozen=True)
class Findings:
    """The whole answer of one run."""

    run_id: str
    engine: str
    simulated: bool
    interrupted: bool
    vllm_version: str | None
    model: str | None
    against: str
    conditions: tuple[ConditionFinding, ...]
    recommendation: Recommendation | None
    answer: str
    """The one-sentence answer."""
    checks: tuple[Check, ...] = ()
    """Checks on the run as a whole."""
    notes: tuple[str, ...] = field(default=())
    ladders: "tuple[LadderFinding, ...]" = ()
    """Where several K of one method were measured: the schedule of each."""
    verification: "Verification | None" = None
    """What `loadgen verify` found when it put the recommendation to the test."""
    diagnostics: "tuple[DiagnosticFinding, ...]" = ()
    """From cells with usage in every chunk (`--diagnose`): tokens per chunk, and what asking for them costs."""
