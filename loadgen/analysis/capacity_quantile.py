"""Quantiles with binomial order-statistic intervals, and what they say of an objective (docs/planning.md)."""

import math
from collections.abc import Sequence
from functools import lru_cache

from scipy import stats

from loadgen.analysis.capacity_model import QuantileEstimate, RequestTimes, Slo, SloFinding, Verdict

TAIL = 0.025
"""Left out on either side of a 95 % interval."""


@lru_cache(maxsize=512)
def ranks(n: int, quantile: float) -> tuple[int | None, int | None]:
    """1-based ranks of the order statistics that bound the quantile with 95 % confidence, whatever the distribution.

    With B ~ Bin(n, q), P(X(r) <= ξ) = P(B >= r) and P(X(s) > ξ) = P(B < s). None: n is too small on that side.
    Source: H. A. David, H. N. Nagaraja, Order Statistics, 2003, section 7.1.
    """
    low = int(stats.binom.ppf(TAIL, n, quantile))
    high = int(stats.binom.ppf(1 - TAIL, n, quantile)) + 1
    return (low if low >= 1 else None, high if high <= n else None)


def needed(quantile: float) -> int:
    """Requests from which on the quantile is bounded above: 1 − q^n >= 0.975, so 368 for p99."""
    return math.ceil(math.log(TAIL) / math.log(quantile))


def quantile_of(ascending: Sequence[float], quantile: float) -> float:
    """The quantile, linear between neighbours (numpy's default); infinite if it touches a failed request."""
    at = quantile * (len(ascending) - 1)
    low, high = math.floor(at), math.ceil(at)
    if ascending[low] == ascending[high]:
        return ascending[low]
    if math.isinf(ascending[high]):
        return math.inf
    return ascending[low] + (at - low) * (ascending[high] - ascending[low])


def estimate_quantile(ascending: Sequence[float], quantile: float) -> QuantileEstimate | None:
    """The quantile with its interval; None without a value."""
    n = len(ascending)
    if n == 0:
        return None
    low, high = ranks(n, quantile)
    return QuantileEstimate(
        value=quantile_of(ascending, quantile),
        n=n,
        low=None if low is None else ascending[low - 1],
        high=None if high is None else ascending[high - 1],
        needed=needed(quantile),
    )


def verdict_of(estimate: QuantileEstimate, limit_s: float) -> Verdict:
    """Met or missed if the whole interval says so, else unresolved."""
    if estimate.high is not None and estimate.high <= limit_s:
        return Verdict.MET
    if estimate.low is not None and estimate.low > limit_s:
        return Verdict.MISSED
    return Verdict.UNRESOLVED


def judge_slo(slo: Slo, begun_ttft_s: Sequence[float], ended: Sequence[RequestTimes]) -> SloFinding | None:
    """The objective over these requests; None if none has the metric."""
    if slo.metric == "ttft":
        values = sorted(begun_ttft_s)
    elif slo.metric == "tpot":
        values = sorted(one.tpot_s for one in ended if one.tpot_s is not None)
    else:
        values = sorted(one.e2e_s for one in ended)
    estimate = estimate_quantile(values, slo.quantile)
    return SloFinding(slo, estimate, verdict_of(estimate, slo.limit_s)) if estimate else None


def overall(findings: Sequence[SloFinding], wanted: int) -> Verdict:
    """Missed if any objective is, met if all `wanted` are, else unresolved."""
    verdicts = [finding.verdict for finding in findings]
    if Verdict.MISSED in verdicts:
        return Verdict.MISSED
    return Verdict.MET if len(verdicts) == wanted and set(verdicts) <= {Verdict.MET} else Verdict.UNRESOLVED


def holds_by_estimate(findings: Sequence[SloFinding], wanted: int) -> bool:
    """All `wanted` estimates lie within their limits, whatever their intervals."""
    return len(findings) == wanted and all(f.estimate.value <= f.slo.limit_s for f in findings)


def is_good(times: RequestTimes, slos: Sequence[Slo]) -> bool:
    """This request keeps every limit, whatever quantile the objective is about (goodput's meaning)."""
    kept = {"ttft": times.ttft_s, "tpot": times.tpot_s, "e2e": times.e2e_s}
    return math.isfinite(times.e2e_s) and all((kept[slo.metric] or 0.0) <= slo.limit_s for slo in slos)
