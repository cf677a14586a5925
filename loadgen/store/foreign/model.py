"""What any load generator's result says of one level, in our words."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from loadgen.errors import UsageError
from loadgen.load.summary import Distribution

M = TypeVar("M", bound=BaseModel)
NONE = Distribution(0)


class Lenient(BaseModel):
    """Others' files hold much that we do not need, and gain keys with each version."""

    model_config = ConfigDict(extra="ignore", protected_namespaces=())


@dataclass(frozen=True)
class ForeignCell:
    """One level of one server as another tool measured it. Seconds, tokens and requests; what it does not say is None
    or an empty distribution.
    """

    tool: str
    """With its version where the file says it."""
    file: str
    level: int
    model: str | None
    started_at: str
    window_s: float
    output_tokens_per_s: float
    requests_per_s: float
    ok: int
    failed: int
    ttft_s: Distribution
    tpot_s: Distribution
    e2e_s: Distribution
    output_tokens: Distribution
    prompt_tokens: Distribution
    in_flight_mean: float | None
    drafts: float | None = None
    draft_tokens: float | None = None
    accepted_tokens: float | None = None
    accepted_per_position: tuple[float, ...] = ()
    warnings: tuple[str, ...] = ()


Reader = Callable[[Path, Any], list[ForeignCell]]


def checked(kind: type[M], data: object, path: Path, tool: str) -> M:
    """The data as that model; UsageError that names the first key that does not fit."""
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the whole"
        raise UsageError(
            f"{path} looks like a result of {tool}, but {place} does not fit ({first['msg']}); give a result as that "
            "tool writes it."
        ) from None


def in_flight(requests_per_s: float, mean_e2e_s: float | None) -> float | None:
    """Mean requests in flight by Little's law (J. D. C. Little, Operations Research 9, 1961); None without times."""
    return None if mean_e2e_s is None else requests_per_s * mean_e2e_s


def scaled(values: Mapping[str, float | None], n: int, factor: float) -> Distribution:
    """A distribution from `mean`, `p50`, `p90`, `p99`, `max` in another unit."""

    def of(name: str) -> float | None:
        value = values.get(name)
        return None if value is None else value * factor

    return Distribution(n, of("mean"), of("p50"), of("p90"), of("p99"), of("max"))
