"""The bodies that come in, and those that go out."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from loadgen.service.state import RunState

Name = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Level = Annotated[int, Field(ge=1, le=4096)]
Count = Annotated[int, Field(ge=1, le=131072)]


class SweepBody(BaseModel):
    """A sweep to start: the flags of `loadgen sweep`, without those that name files or commands of this machine."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    profiles: list[Name] = Field(default=["ngram"], min_length=1, max_length=8)
    against: Name = "baseline"
    workloads: list[Name] = Field(default=["code-edit", "chat"], min_length=1, max_length=12)
    levels: list[Level] | None = Field(default=None, min_length=1, max_length=24)
    repeats: int | None = Field(default=None, ge=1, le=50)
    quick: bool = False
    engine: Name = "auto"
    hardware: Name | None = None
    model: str | None = Field(default=None, max_length=200, pattern=r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$")
    url: str | None = Field(default=None, max_length=1000)
    gpu: int | None = Field(default=None, ge=0, le=63)
    window_s: float | None = Field(default=None, ge=0.2, le=3600)
    max_tokens: Count | None = None
    input_tokens: list[Count] | None = Field(default=None, min_length=1, max_length=8)
    temperature: list[Annotated[float, Field(ge=0, le=2)]] = Field(default=[0.0], min_length=1, max_length=8)
    k: str | None = Field(
        default=None,
        max_length=60,
        pattern=r"^(auto|half|[1-9][0-9]?(,[1-9][0-9]?)*)$",
        description="A ladder of draft lengths of each profile: 1,2,4, or auto.",
    )
    refine: bool = Field(default=False, description="Add levels and repeats until the break-even is narrow.")
    order: Literal["together", "blocks", "alternate"] | None = None
    sessions: int = Field(default=1, ge=1, le=20)
    seed: int = Field(default=1, ge=0, le=2**31 - 1)


class LoginBody(BaseModel):
    """The token, once; a cookie stands for it after that."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    token: str = Field(max_length=512)


class RunRow(BaseModel):
    """One run in the list."""

    run: str
    created_at: str
    state: RunState
    reason: str = ""
    engine: str
    simulated: bool
    quick: bool
    profiles: list[str]
    against: str
    workloads: list[str]
    levels: list[int]
    repeats: int
    cells: int
    cells_planned: int
    answer: str | None = None
    indicative: bool = False
    files: list[str] = []
    """Report files that can be fetched from `/runs/{run}/{file}`."""
    queue_position: int | None = None
    """1 is next; null if the run does not wait."""


class RunList(BaseModel):
    """A page of the list, newest first."""

    total: int
    unreadable: list[str] = []
    """Folders whose manifest cannot be read."""
    runs: list[RunRow]


class Named(BaseModel):
    """A choice with its explanation."""

    name: str
    description: str


class Options(BaseModel):
    """What a sweep can be made of here."""

    version: str
    profiles: list[Named]
    workloads: list[Named]
    engines: list[Named]
    hardware: list[Named]
    servers: list[str]
    default_hardware: str
    default_levels: str
    quick_levels: str
    needs_token: bool


class Point(BaseModel):
    """One measured cell, as the live chart shows it."""

    profile: str
    workload: str
    input_tokens: int
    temperature: float
    level: int
    repeat: int
    session: int
    tokens_per_s: float | None
    ttft_p50_s: float | None
    tpot_p50_s: float | None


class Running(BaseModel):
    """The cell that is measured now."""

    profile: str
    workload: str
    level: int
    repeat: int
    phase: str
    elapsed_s: float
    tokens_per_s: float | None
    in_flight: int


class Status(BaseModel):
    """Where a run stands now."""

    state: RunState
    reason: str = ""
    cells: int
    cells_planned: int
    remaining_s: float | None = None
    queue_position: int | None = None
    running: Running | None = None
    servers: dict[str, str] = {}
    notices: list[str] = []
    answer: str | None = None
    files: list[str] = []
