"""Does the advice hold? Non-inferiority with a stated margin, at every load (docs/method.md, part 9)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from scipy import stats

from loadgen.analysis.moderation import MAX_PRIOR_DEGREES, Spread, moderated
from loadgen.analysis.verify_model import Comparison, StaticGain, Verdict
from loadgen.analysis.verify_open import BLOCKS
from loadgen.analysis.verify_samples import Sample

ALPHA = 0.05
LEAST_MARGIN = 0.02
MOST_MARGIN = 0.10
"""Noise beyond it is answered with more repeats, not with a wider claim."""
POWER = 0.8
MOST_REPEATS = 1000
"""Beyond it lies what no repeats settle: a difference of just the margin."""
WORST_LOAD = 1.4
"""The load with the least certain variance decides; so far it falls behind (docs/method.md, part 9)."""


@dataclass(frozen=True)
class _Tested:
    sample: Sample
    error: float | None
    degrees: float
    p_not_worse: float | None
    p_worse: float | None


def compare(found: Sequence[Sample], margin: float) -> tuple[Comparison, ...]:
    """Each sample's verdict.

    not worse: a one-sided t test at 5 % rejects "worse by more than the margin". The claim as a whole is the
    intersection of these, so that no correction is due (intersection-union test, Berger 1982). worse: the opposite test
    rejects after Holm's step-down over all comparisons, so that even one false "worse" has a chance below 5 %; its
    variance is never below the mean one, for among a dozen loads it is the luckiest variance that calls a false "worse"
    (docs/method.md, part 9).
    """
    bound, floor = math.log1p(margin), _mean_variance(found)
    tested = [_test(sample, spread, bound, floor) for sample, spread in zip(found, _spreads(found), strict=True)]
    worse = _holm([one.p_worse for one in tested])
    return tuple(_comparison(one, bound, is_worse=bad) for one, bad in zip(tested, worse, strict=True))


def overall(comparisons: Sequence[Comparison]) -> Verdict:
    """holds: no worse than anything anywhere; does not hold: surely worse than something somewhere; else open."""
    verdicts = {comparison.verdict for comparison in comparisons}
    if Verdict.FAILS in verdicts:
        return Verdict.FAILS
    return Verdict.HOLDS if verdicts == {Verdict.HOLDS} else Verdict.OPEN


def attainable_margin(spreads: Sequence[tuple[float, int]], repeats: int, places: int = 1) -> float:
    """The smallest margin that true ties at all `places` pass together with 80 % power, from (standard deviation,
    degrees of freedom) of earlier cells' ln ratios and the repeats to come; between 2 and 10 %.

    1.4 · (t.95 + t.q) · s / √n with q = 0.8^(1 / places), the pooled s, and the degrees of freedom that a moderated
    variance of three repeats has at most.
    """
    degrees = sum(own for _, own in spreads)
    if not degrees:
        return MOST_MARGIN / 2
    pooled = math.sqrt(math.fsum(own * sd**2 for sd, own in spreads) / degrees)
    drawn = min(float(degrees), MAX_PRIOR_DEGREES + 2)
    factor = float(stats.t.ppf(1 - ALPHA, drawn) + stats.t.ppf(POWER ** (1 / max(places, 1)), drawn))
    wanted = math.expm1(WORST_LOAD * factor * pooled / math.sqrt(max(repeats, 1)))
    return min(max(wanted, LEAST_MARGIN), MOST_MARGIN)


def static_gains(found: Sequence[Sample]) -> tuple[StaticGain, ...]:
    """Each sample's mean with its moderated standard error."""
    tested = (_test(sample, spread, 0.0, 0.0) for sample, spread in zip(found, _spreads(found), strict=True))
    return tuple(
        StaticGain(one.sample.concurrency, one.sample.mean, one.error, len(one.sample.values)) for one in tested
    )


def _spreads(found: Sequence[Sample]) -> list[Spread | None]:
    """Variances that learn from the other loads of the same two servers; an open loop keeps its own."""
    result: list[Spread | None] = [
        Spread(sample.concurrency, sample.sd**2, len(sample.values) - 1) if sample.sd is not None else None
        for sample in found
    ]
    groups: dict[frozenset[object], list[int]] = {}
    for index, sample in enumerate(found):
        if sample.closed and result[index] is not None:
            groups.setdefault(frozenset((sample.claimed, sample.other)), []).append(index)
    for indices in groups.values():
        drawn = moderated([spread for index in indices if (spread := result[index]) is not None])
        for index, spread in zip(indices, drawn, strict=True):
            result[index] = spread
    return result


def _mean_variance(found: Sequence[Sample]) -> float:
    """Of all closed-loop samples, whatever their load."""
    known = [sample.sd**2 for sample in found if sample.closed and sample.sd is not None]
    return math.fsum(known) / len(known) if known else 0.0


def _test(sample: Sample, spread: Spread | None, bound: float, floor: float) -> _Tested:
    if spread is None:
        return _Tested(sample, None, 0.0, None, None)
    error = math.sqrt(spread.variance / len(sample.values))
    if error == 0:
        worse = sample.mean < -bound
        return _Tested(sample, 0.0, spread.degrees, 1.0 if worse else 0.0, 0.0 if worse else 1.0)
    careful = max(error, math.sqrt(floor / len(sample.values))) if sample.closed else error
    p_not_worse = float(stats.t.sf((sample.mean + bound) / error, spread.degrees))
    p_worse = float(stats.t.cdf((sample.mean + bound) / careful, spread.degrees))
    return _Tested(sample, error, spread.degrees, p_not_worse, p_worse)


def _holm(values: Sequence[float | None]) -> list[bool]:
    """Which hypotheses Holm's step-down rejects at 5 %; None is never rejected."""
    ranked = sorted((p, index) for index, p in enumerate(values) if p is not None)
    rejected = [False] * len(values)
    for place, (p, index) in enumerate(ranked):
        if p > ALPHA / (len(ranked) - place):
            break
        rejected[index] = True
    return rejected


def _comparison(one: _Tested, bound: float, *, is_worse: bool) -> Comparison:
    sample = one.sample
    not_worse = one.p_not_worse is not None and one.p_not_worse <= ALPHA
    verdict = Verdict.FAILS if is_worse else Verdict.HOLDS if not_worse else Verdict.OPEN
    interval = None
    if one.error is not None:
        half = float(stats.t.ppf(1 - ALPHA, one.degrees)) * one.error
        interval = (math.exp(sample.mean - half), math.exp(sample.mean + half))
    more = _more_repeats(one, bound) if verdict is Verdict.OPEN else None
    return Comparison(
        place=sample.place,
        concurrency=sample.concurrency,
        claimed=sample.claimed,
        other=sample.other,
        ratio=math.exp(sample.mean),
        n=len(sample.values),
        ci90=interval,
        p_not_worse=one.p_not_worse,
        p_worse=one.p_worse,
        verdict=verdict,
        standing=_standing(verdict, interval, bound),
        # An open loop's units are stretches of one run: what can be added is whole runs.
        more_repeats=more if more is None or sample.closed else math.ceil(more / BLOCKS),
        more_s=more * sample.seconds if more is not None else None,
    )


def _standing(verdict: Verdict, interval: tuple[float, float] | None, bound: float) -> str:
    if verdict is not Verdict.HOLDS or interval is None:
        return "worse" if verdict is Verdict.FAILS else "open"
    if interval[0] > 1.0:
        return "better"
    return "equal" if math.log(interval[1]) < bound else "no worse"


def _more_repeats(one: _Tested, bound: float) -> int:
    """Repeats beyond those there are until one of the two tests rejects, if mean and spread stay; MOST_REPEATS stands
    for more than that.
    """
    sample, have = one.sample, len(one.sample.values)
    sd = _sd(one)
    if sd is None:
        return max(1, 3 - have)
    for n in range(have + 1, MOST_REPEATS):
        if _quantile(one, n) * sd / math.sqrt(n) < abs(sample.mean + bound):
            return n - have
    return MOST_REPEATS


def _sd(one: _Tested) -> float | None:
    return one.error * math.sqrt(len(one.sample.values)) if one.error is not None else None


@lru_cache(maxsize=4096)
def _t(degrees: float) -> float:
    return float(stats.t.ppf(1 - ALPHA, degrees))


def _quantile(one: _Tested, n: int) -> float:
    return _t(max(one.degrees, n - 1))
