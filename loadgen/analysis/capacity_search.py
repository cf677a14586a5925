"""How much one server carries: judged level by level, and the highest rate or number of users within the limits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from loadgen.analysis.capacity_model import (
    Capacity,
    Ceiling,
    Demand,
    LevelVerdict,
    LoadPoint,
    OpenPoint,
    OpenVerdict,
    OperatingPoint,
    QuantileEstimate,
    Slo,
    SloFinding,
    Verdict,
)
from loadgen.analysis.capacity_quantile import (
    holds_by_estimate,
    is_good,
    judge_slo,
    needed,
    overall,
    ranks,
    verdict_of,
)
from loadgen.analysis.capacity_queue import (
    Company,
    Curve,
    Latencies,
    Mixture,
    Wait,
    latencies_of,
    prompt_wait,
    under_rate,
    with_users,
)

ESTIMATE = "closed-loop estimate"
MEASURED = "open-loop"
OBJECTIVES = "objectives"
LEVELS = "measured levels"
HALVINGS = 30
PARTS = 64
MOST_USERS = 200_000


def judge_level(point: LoadPoint, slos: Sequence[Slo]) -> LevelVerdict:
    """One closed-loop level against the objectives, with its goodput."""
    findings = tuple(f for slo in slos if (f := judge_slo(slo, point.begun, point.ended)) is not None)
    share = sum(is_good(one, slos) for one in point.ended) / len(point.ended)
    return LevelVerdict(
        level=point.level,
        requests_per_s=point.requests_per_s,
        tokens_per_s=point.tokens_per_s,
        goodput_per_s=point.requests_per_s * share,
        good_share=share,
        findings=findings,
        verdict=overall(findings, len(slos)),
        source=point.source,
    )


def judge_open(point: OpenPoint, slos: Sequence[Slo]) -> OpenVerdict:
    """One open-loop rate against the objectives."""
    ttft = [one.ttft_s for one in point.times]
    findings = tuple(f for slo in slos if (f := judge_slo(slo, ttft, point.times)) is not None)
    share = sum(is_good(one, slos) for one in point.times) / max(1, len(point.times))
    return OpenVerdict(
        rate_per_s=point.rate_per_s,
        requests_per_s=point.requests_per_s,
        in_flight=point.in_flight,
        goodput_per_s=point.requests_per_s * share,
        findings=findings,
        verdict=overall(findings, len(slos)),
    )


def ceiling_of(rows: Sequence[tuple[float, Verdict, tuple[SloFinding, ...]]], wanted: int) -> Ceiling | None:
    """From (load, verdict, findings), ascending: the highest load such that it and all lower ones hold.

    Surely: it holds by its whole interval, and no lower one misses; a low level may be unresolved for its few requests
    without that, for less load is not slower.
    """
    if not rows:
        return None
    surely = by_estimate = None
    for load, verdict, findings in rows:
        if verdict is Verdict.MISSED or not holds_by_estimate(findings, wanted):
            break
        by_estimate = load
        surely = load if verdict is Verdict.MET else surely
    return Ceiling(surely, by_estimate, rows[-1][0])


@dataclass(frozen=True)
class Station:
    """One setting's closed-loop levels as a queueing station."""

    curve: Curve
    latencies: dict[str, Latencies]
    tokens_per_request: float
    prompt_s: float | None = None
    """Median TTFT of a request alone: how long a prompt makes others wait; None where level 1 was not measured."""

    def findings(self, company: Company, slos: Sequence[Slo], *, generous: bool = False) -> tuple[SloFinding, ...]:
        """The objectives in this company. `generous`: requests beyond the levels feel what the top level's do."""
        if generous:
            met = company.met.copy()
            met[-1] += company.beyond
            company = replace(company, met=met, beyond=0.0)
        wait = prompt_wait(company.rate_per_s, self.prompt_s) if self.prompt_s and not company.lone else None
        return tuple(
            _finding(slo, self.latencies[slo.metric].mixed(company), wait if slo.metric == "ttft" else None)
            for slo in slos
        )

    def operating(self, company: Company, slos: Sequence[Slo], users: float | None) -> OperatingPoint:
        """The facts of one server in this company."""
        return OperatingPoint(
            rate_per_s=company.rate_per_s,
            users=users,
            in_flight=company.in_flight,
            tokens_per_s=company.rate_per_s * self.tokens_per_request,
            beyond_share=company.beyond,
            quantiles=self.findings(company, slos),
        )


def station_of(points: Sequence[LoadPoint], slos: Sequence[Slo]) -> Station | None:
    """The station; None if a level lacks a metric that is asked for."""
    latencies: dict[str, Latencies] = {}
    for metric in {slo.metric for slo in slos}:
        found = latencies_of([(point.level, _samples(point, metric)) for point in points])
        if found is None:
            return None
        latencies[metric] = found
    tokens = sum(point.tokens_per_s / point.requests_per_s for point in points) / len(points)
    alone = points[0].begun if points[0].level == 1 else ()
    return Station(
        Curve(tuple((point.level, point.requests_per_s) for point in points)),
        latencies,
        tokens,
        median(alone) if alone else None,
    )


def capacity(station: Station, slos: Sequence[Slo], demand: Demand) -> Capacity:
    """The most that one server carries by the queueing estimate, in the demand's own unit."""
    by_users = demand.users is not None
    unit = "users" if by_users else "requests/s"

    def findings(load: float, *, generous: bool = False) -> tuple[SloFinding, ...] | None:
        found = company(load)
        return station.findings(found, slos, generous=generous) if found is not None else None

    def company(load: float) -> Company | None:
        return with_users(station.curve, round(load), demand.think_s) if by_users else under_rate(station.curve, load)

    def holds(load: float, *, generous: bool = False) -> bool:
        found = findings(load, generous=generous)
        return found is not None and holds_by_estimate(found, len(slos))

    def judged(load: float, *, generous: bool = False) -> Verdict:
        found = findings(load, generous=generous)
        return Verdict.MISSED if found is None else overall(found, len(slos))

    best = _most_users(holds) if by_users else _highest_rate(holds, float(station.curve.rates()[-1]))
    if best is None:
        return Capacity(None, unit, ESTIMATE, OBJECTIVES, None)
    more = best + 1 if by_users else best * 1.02
    limited_by = LEVELS if holds(more, generous=True) else OBJECTIVES
    found = company(best)
    at = station.operating(found, slos, best if by_users else None) if found else None
    surely = _surely(lambda load: judged(load) is Verdict.MET, best, whole=by_users)
    most = 32 * best if by_users else 0.999 * float(station.curve.rates()[-1])
    at_most = _at_most(lambda load: judged(load, generous=True) is not Verdict.MISSED, best, most, whole=by_users)
    return Capacity(best, unit, ESTIMATE, limited_by, at, surely, None if limited_by == LEVELS else at_most)


def operate(station: Station, slos: Sequence[Slo], demand: Demand, servers: int) -> OperatingPoint | None:
    """One of `servers` servers that share the demand evenly; None if it cannot keep up."""
    if demand.users is not None:
        users = max(1, -(-demand.users // servers))
        return station.operating(with_users(station.curve, users, demand.think_s), slos, users)
    found = under_rate(station.curve, (demand.rate_per_s or 0.0) / servers)
    return station.operating(found, slos, None) if found else None


def _finding(slo: Slo, mixture: Mixture, wait: Wait | None) -> SloFinding:
    n = max(1, int(mixture.n))
    low, high = ranks(n, slo.quantile)
    estimate = QuantileEstimate(
        value=mixture.quantile(slo.quantile, wait),
        n=n,
        low=None if low is None else mixture.quantile(low / n, wait),
        high=None if high is None else mixture.quantile(high / n, wait),
        needed=needed(slo.quantile),
    )
    return SloFinding(slo, estimate, verdict_of(estimate, slo.limit_s))


def _samples(point: LoadPoint, metric: str) -> Sequence[float]:
    if metric == "ttft":
        return point.begun
    if metric == "tpot":
        return [one.tpot_s for one in point.ended if one.tpot_s is not None]
    return [one.e2e_s for one in point.ended]


def _most_users(holds: Callable[[float], bool]) -> float | None:
    """The highest whole number that holds, by doubling and halving; None if 1 does not."""
    if not holds(1):
        return None
    low, high = 1, 2
    while high <= MOST_USERS and holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return float(low)


def _highest_rate(holds: Callable[[float], bool], top_rate: float) -> float | None:
    """The highest rate below the server's own that holds; None if hardly any does."""
    low, high = 0.0, top_rate
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low if low > 1e-4 * top_rate else None


def _surely(met: Callable[[float], bool], best: float, *, whole: bool) -> float | None:
    """The highest load up to `best` that is met by its whole interval, to 1/64 of it; None if none of them is.

    From above: a low load may be unresolved for its few requests, though a higher one is not.
    """
    for part in range(PARTS, 0, -1):
        load = best * part / PARTS
        load = float(int(load)) if whole else load
        if load > 0 and met(load):
            return load
    return None


def _at_most(may_hold: Callable[[float], bool], best: float, most: float, *, whole: bool) -> float | None:
    """The highest load that the intervals do not exclude; None if they exclude none up to `most`."""
    if most <= best or may_hold(most):
        return None
    low, high = best, most
    while high - low > (1 if whole else best / PARTS):
        middle = (low + high) // 2 if whole else (low + high) / 2
        low, high = (middle, high) if may_hold(middle) else (low, middle)
    return low
